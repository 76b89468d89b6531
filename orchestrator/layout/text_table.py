"""A plain table of texts with its legend and its reasons: what the probes of single cells are told in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextTable:
    """`rows`: one text per column. `legend`: how to read them; `reasons`: what lies behind single marks.

    `detail`: it tells more of what a table before it sums up; a page that shows a run's main tables leaves it out.
    """

    title: str
    common: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    detail: bool = False
