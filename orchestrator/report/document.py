"""The whole report of a run, before any layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.records.model import Record, RunFile
from orchestrator.report import deploy, installs, lifecycle, startup
from orchestrator.report.flat import flats
from orchestrator.report.pivot import Pivot, pivots
from orchestrator.report.setup import LeftOut, banner, facts, left_out, notes
from orchestrator.report.sheet import Sheet
from orchestrator.report.table import Table, tables


@dataclass(frozen=True)
class Document:
    """`banner` is "" but for a dry run, and heads every rendering.

    `pivots`: none where the axis of the run's view does not vary; `flats` where it is read across none.
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
    sheets: tuple[Sheet, ...]
    notes: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def document(run: RunFile, records: Sequence[Record]) -> Document:
    """Everything that a renderer lays out. Pure: the same run gives the same document."""
    return Document(
        schema="appserver-matrix/report/1",
        banner=banner(run),
        run=run.id,
        suite=run.suite,
        baseline=run.baseline,
        facts=facts(run, records),
        pivots=pivots(run, records),
        flats=flats(run, records),
        tables=tables(run, records),
        sheets=(
            *installs.sheets(run, records),
            *startup.sheets(records),
            *lifecycle.sheets(records),
            *deploy.sheets(records),
        ),
        notes=notes(records),
        left_out=left_out(run),
    )
