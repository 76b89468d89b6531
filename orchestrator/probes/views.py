"""What the views of single cells share: who a record is of, and a table of those without figures.

A view reads any record that has the fields named here, and the section of its own probe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from packaging.utils import canonicalize_name

from orchestrator.layout.text import NONE
from orchestrator.layout.text_table import TextTable


class ViewedCell(Protocol):
    """The axes of a cell that views name."""

    @property
    def server(self) -> str: ...

    @property
    def variant(self) -> str: ...

    @property
    def flavour(self) -> str: ...

    @property
    def mode(self) -> str: ...

    @property
    def workers(self) -> int: ...

    @property
    def tuned(self) -> bool: ...


class ViewedImage(Protocol):
    """What a cell ran in. `versions`: of all distributions, by name."""

    @property
    def versions(self) -> Mapping[str, str]: ...


class ViewedReason(Protocol):
    """Why a cell has no figures, in one line."""

    @property
    def line(self) -> str: ...


class Viewed(Protocol):
    """The record of one cell, as far as every view reads it."""

    @property
    def probe(self) -> str: ...

    @property
    def cell(self) -> ViewedCell: ...

    @property
    def image(self) -> ViewedImage | None: ...

    @property
    def package(self) -> str: ...

    @property
    def declared(self) -> Mapping[str, Any]: ...

    @property
    def outcome(self) -> str: ...

    @property
    def reason(self) -> ViewedReason | None: ...


class ViewedRun(Protocol):
    """The run that records are of. `engine`: the facts of it, with its `name`."""

    @property
    def engine(self) -> Mapping[str, Any]: ...


def missing(what: str, records: Sequence[Viewed]) -> tuple[TextTable, ...]:
    """The cells without figures."""
    rows = tuple((name_of(r), r.outcome.replace("_", " "), r.reason.line) for r in records if r.reason)
    return (TextTable(f"{what}: not measured", "", ("server", "outcome", "reason"), rows),) if rows else ()


def name_of(record: Viewed) -> str:
    return f"{record.cell.server}/{record.cell.variant}"


def version_of(record: Viewed) -> str:
    """Of the distribution that owns the socket; records that do not name it tell it by what they declare."""
    versions: Mapping[str, str] = record.image.versions if record.image else {}
    spelt = {str(canonicalize_name(name)): version for name, version in versions.items()}
    names = (record.package, str(record.declared.get("server", "")), record.cell.variant, record.cell.server)
    return next((spelt[name] for name in names if name in spelt), NONE)
