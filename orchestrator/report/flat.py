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
from orchestrator.report.conclusions import conclusions, warnings
from orchestrator.report.entries import Entry, Figure, common, decisive, entries, letters_of, names_of
from orchestrator.report.measures import bare, heading
from orchestrator.report.reading import Reading, reading
from orchestrator.report.table import MARKS, RANK, Column, Table, footnotes, foremost, missing, note_of, rows

_COLUMNS = ("protocol", "tls", "open", "workers", "connections")
_FLAT_NOTE = "Ranks and ratios count among rows that agree in {}; intervals: see their own tables"


@dataclass(frozen=True)
class Comparison:
    """The rows that are compared with each other, named as among themselves."""

    title: str
    entries: tuple[Entry, ...]


def flats(run: RunFile, records: Sequence[Record], attempt: Attempt = plainly) -> tuple[Table, ...]:
    """One per workload; none where the run's view is across an axis."""
    read = reading(run, records)
    if read.view.across != "none":
        return ()
    by_workload: dict[str, list[Record]] = {}
    for record in read.records:
        by_workload.setdefault(record.cell.workload, []).append(record)
    named = by_workload.items()
    made = [attempt(f"The table of {workload}", partial(_flat, read, group)) for workload, group in named]
    return tuple(chain.from_iterable(made))


def _flat(read: Reading, records: Sequence[Record]) -> Table:
    letters, names = letters_of(records), names_of(records)
    groups = read.groups(records)
    compared = [Comparison(read.title(group[0], "workload"), entries(read, group, letters)) for group in groups]
    made = [replace(entry, name=names[entry.record.id]) for one in compared for entry in one.entries]
    figures = {decisive(one.entries) for one in compared}
    shown = _columns(read, records, "ratio" if "ratio" in figures else "rps")
    axes = [axis for axis in read.axes if axis != "workload" and _varies(records, axis)]
    note = _FLAT_NOTE.format(listed([WORDS[axis].by for axis in axes])) if axes else ""
    return Table(
        title=f"{records[0].cell.workload}: all comparisons",
        common=". ".join(filter(None, (common(records), note))),
        columns=tuple(column.title for column in shown),
        main=tuple(column.title for column in shown if column.main),
        rows=rows(made, shown),
        costs=None,
        note=note_of(figures, read.sign, "In each comparison, rows"),
        missing=missing(made),
        footnotes=footnotes(made, letters),
        warnings=_by_comparison([(one.title, warnings(read, one.entries)) for one in compared]),
        conclusions=tuple(f"{one.title}: {text}" for one in compared for text in conclusions(read, one.entries)),
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


def _columns(read: Reading, records: Sequence[Record], first: Figure) -> tuple[Column, ...]:
    axes = [axis for axis in _COLUMNS if _varies(records, axis)]
    short = names_of(records, *axes)
    server = Column("server", lambda entry, _: short[entry.record.id], figure=False, main=True)
    figures = [_figure(name, read.sign) for name in foremost(read.view.show, first)]
    return (RANK, server, *map(_axis, axes), *figures, MARKS)


def _varies(records: Sequence[Record], axis: str) -> bool:
    return len({getattr(record.cell, axis) for record in records}) > 1


def _axis(axis: str) -> Column:
    words = WORDS[axis]
    return Column(words.by, lambda entry, _: words.heading(getattr(entry.record.cell, axis)), figure=False, main=True)


def _figure(name: str, base: str) -> Column:
    return Column(heading(name, base), lambda entry, summary: bare(name, entry, summary), main=name in ("rps", "ratio"))
