"""One table of all comparisons of a workload, for a view across none: the axes that vary are columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from orchestrator.evidence.model import Record, RunFile
from orchestrator.layout.text import listed
from orchestrator.report.attempt import Attempt, plainly
from orchestrator.report.axes import WORDS
from orchestrator.report.compared_run import ComparedRun, compared_run
from orchestrator.report.conclusions import conclusions, warnings
from orchestrator.report.measures import bare, heading
from orchestrator.report.standings import Figure, Standing, common, decisive, letters_of, names_of, standings
from orchestrator.report.table import MARKS, RANK, Column, Table, footnotes, foremost, missing, note_of, rows

_COLUMNS = ("protocol", "tls", "open", "workers", "connections")
_FLAT_NOTE = "Ranks and ratios count among rows that agree in {}; intervals: see their own tables"


@dataclass(frozen=True)
class Comparison:
    """The rows that are compared with each other, named as among themselves."""

    title: str
    standings: tuple[Standing, ...]


def flats(run: RunFile, records: Sequence[Record], attempt: Attempt = plainly) -> tuple[Table, ...]:
    """One per workload; none where the run's view is across an axis."""
    compared = compared_run(run, records)
    if compared.view.across != "none":
        return ()
    by_workload: dict[str, list[Record]] = {}
    for record in compared.records:
        by_workload.setdefault(record.cell.workload, []).append(record)
    named = by_workload.items()
    made = [attempt(f"The table of {workload}", partial(_flat, compared, group)) for workload, group in named]
    return tuple(chain.from_iterable(made))


def _flat(compared: ComparedRun, records: Sequence[Record]) -> Table:
    letters, names = letters_of(records), names_of(records)
    groups = compared.groups(records)
    comparisons = [
        Comparison(compared.title(group[0], "workload"), standings(compared, group, letters)) for group in groups
    ]
    made = [replace(standing, name=names[standing.record.id]) for one in comparisons for standing in one.standings]
    figures = {decisive(one.standings) for one in comparisons}
    shown = _columns(compared, records, "ratio" if "ratio" in figures else "rps")
    axes = [axis for axis in compared.axes if axis != "workload" and _varies(records, axis)]
    note = _FLAT_NOTE.format(listed([WORDS[axis].by for axis in axes])) if axes else ""
    return Table(
        title=f"{records[0].cell.workload}: all comparisons",
        common=". ".join(filter(None, (common(records), note))),
        columns=tuple(column.title for column in shown),
        main=tuple(column.title for column in shown if column.main),
        rows=rows(made, shown),
        costs=None,
        note=note_of(figures, compared.sign, "In each comparison, rows"),
        missing=missing(made),
        footnotes=footnotes(made, letters),
        warnings=_by_comparison([(one.title, warnings(compared, one.standings)) for one in comparisons]),
        conclusions=tuple(
            f"{one.title}: {text}" for one in comparisons for text in conclusions(compared, one.standings)
        ),
    )


def _by_comparison(found: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """Each text once, with the comparisons that it is about where it is not about all."""
    by_text: dict[str, list[str]] = {}
    for title, texts in found:
        for text in texts:
            by_text.setdefault(text, []).append(title)
    return tuple(
        text if len(titles) == len(found) else f"{'; '.join(titles)}: {text}" for text, titles in by_text.items()
    )


def _columns(compared: ComparedRun, records: Sequence[Record], first: Figure) -> tuple[Column, ...]:
    axes = [axis for axis in _COLUMNS if _varies(records, axis)]
    short = names_of(records, *axes)
    server = Column("server", lambda standing, _: short[standing.record.id], figure=False, main=True)
    figures = [_figure(name, compared.sign) for name in foremost(compared.view.show, first)]
    return (RANK, server, *map(_axis, axes), *figures, MARKS)


def _varies(records: Sequence[Record], axis: str) -> bool:
    return len({getattr(record.cell, axis) for record in records}) > 1


def _axis(axis: str) -> Column:
    words = WORDS[axis]
    return Column(
        words.by, lambda standing, _: words.heading(getattr(standing.record.cell, axis)), figure=False, main=True
    )


def _figure(name: str, base: str) -> Column:
    return Column(
        heading(name, base), lambda standing, summary: bare(name, standing, summary), main=name in ("rps", "ratio")
    )
