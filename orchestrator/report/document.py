"""The whole report of a run, before any layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Literal, TypeVar

from orchestrator.evidence.model import Record, RunFile
from orchestrator.layout.text_table import TextTable
from orchestrator.probes.registry import PROBES, records_of
from orchestrator.report.attempt import Attempts
from orchestrator.report.conditions import LeftOut, banner, conditions, left_out, notes
from orchestrator.report.flat import flats
from orchestrator.report.pivot import Pivot, pivots
from orchestrator.report.table import Table, tables

T = TypeVar("T")


@dataclass(frozen=True)
class Document:
    """`banner` is "" but for a dry run, and heads every rendering.

    `pivots`: none where the axis of the run's view does not vary; `flats` where it is read across none. `failures`: a
    sentence in the place of each piece that could not be made.
    """

    schema: Literal["appserver-matrix/report/1"]
    banner: str
    run: str
    suite: str
    baseline: str
    facts: tuple[str, ...]
    pivots: tuple[Pivot, ...]
    flats: tuple[Table, ...]
    tables: tuple[Table, ...]
    sheets: tuple[TextTable, ...]
    notes: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    failures: tuple[str, ...]


def document(run: RunFile, records: Sequence[Record]) -> Document:
    """Everything that a renderer lays out. Pure: the same run gives the same document. A piece that fails is told."""
    attempt = Attempts()

    def several(what: str, make: Callable[[], Sequence[T]]) -> tuple[T, ...]:
        return tuple(chain.from_iterable(attempt(what, make)))

    return Document(
        schema="appserver-matrix/report/1",
        banner=banner(run),
        run=run.id,
        suite=run.suite,
        baseline=run.baseline,
        facts=several("What the figures rest on", lambda: conditions(run, records)),
        pivots=several("The tables by an axis", lambda: pivots(run, records, attempt)),
        flats=several("The tables of all comparisons", lambda: flats(run, records, attempt)),
        tables=several("The tables", lambda: tables(run, records, attempt)),
        sheets=tuple(
            table
            for probe in PROBES.values()
            for table in several(f"The table of {probe.noun}", partial(probe.tables, run, records_of(probe, records)))
        ),
        notes=several("How to read the tables", lambda: notes(records)),
        left_out=several("What is left out", lambda: left_out(run)),
        failures=tuple(attempt.failures),
    )
