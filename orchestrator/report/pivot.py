"""Servers × the values of one axis: the table in which a suite is read, such as servers × connections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from orchestrator.evidence.model import Record, RunFile, Summary
from orchestrator.figures import Estimate
from orchestrator.layout.text import NONE, listed
from orchestrator.report.attempt import Attempt, plainly
from orchestrator.report.axes import WORDS, Value, ordered
from orchestrator.report.conclusions import referred
from orchestrator.report.entries import Entry, common, entries, key, letters_of
from orchestrator.report.measures import MEASURES, bare, heading
from orchestrator.report.openloop import OPEN_NOTE, open_lines, overloaded
from orchestrator.report.reading import Reading, reading
from orchestrator.report.references import reference_warnings
from orchestrator.report.table import NO_QUOTIENT, Footnote, footnotes, outcome_of

PIVOT_NOTE = (
    "“≥”: a lower bound; “—”: no figure. Rows stand by requests/s in the {} column, which is no ranking. Intervals: "
    "see the tables."
)


@dataclass(frozen=True)
class PivotCell:
    """The texts of a cell (without intervals, which the tables have), its raw figures, and the one that is drawn."""

    id: str
    texts: tuple[str, ...]
    marks: str
    void: bool
    outside: bool
    bound: bool
    overloaded: bool
    drawn: Estimate | None
    summary: Summary | None

    @property
    def text(self) -> str:
        """≥12.3k · 1.4× a"""
        return self.said(len(self.texts))

    def said(self, figures: int) -> str:
        """The first so many figures, and the marks."""
        known = " · ".join(self.texts[:figures]) if {*self.texts[:figures]} - {NONE} else NONE
        return f"{known}{' ' * bool(self.marks)}{self.marks}"


@dataclass(frozen=True)
class PivotRow:
    """One cell for each value; None where it is not part of the run."""

    name: str
    cells: tuple[PivotCell | None, ...]


@dataclass(frozen=True)
class Pivot:
    """`show`: names of the figures in each place; `told`: the same in words, with the axis. The order is no ranking.

    `base`: what ratios refer to; `drawn`: the figure of a picture.
    """

    title: str
    told: str
    common: str
    across: str
    values: tuple[Value, ...]
    headings: tuple[str, ...]
    show: tuple[str, ...]
    base: str
    drawn: str
    rows: tuple[PivotRow, ...]
    note: str
    footnotes: tuple[Footnote, ...]
    warnings: tuple[str, ...]
    conclusions: tuple[str, ...]


def pivots(run: RunFile, records: Sequence[Record], attempt: Attempt = plainly) -> tuple[Pivot, ...]:
    """One for all comparisons that agree in all but the axis of the run's view; none where it has one value only."""
    read = reading(run, records)
    if read.view.across not in WORDS:
        return ()
    across = read.view.across
    groups = [group for group in read.groups(read.records, across) if len(_values(read, group)) > 1]
    made = [attempt(f"The table of {read.title(group[0], across)}", partial(_pivot, read, group)) for group in groups]
    return tuple(chain.from_iterable(made))


def _values(read: Reading, records: Sequence[Record]) -> tuple[Value, ...]:
    return ordered(_value(read, record) for record in records)


def _value(read: Reading, record: Record) -> Value:
    found: Value = getattr(record.cell, read.view.across)
    return found


def _pivot(read: Reading, records: Sequence[Record]) -> Pivot:
    across, letters, values = read.view.across, letters_of(records), _values(read, records)
    words = WORDS[across]
    made = entries(read, records, letters, across)
    by_value = sorted(made, key=lambda entry: values.index(_value(read, entry.record)))
    show = " · ".join(heading(name, read.sign) for name in read.view.show)
    return Pivot(
        title=read.title(records[0], across),
        told=f"{show}, by {words.by}",
        common=common(records, across),
        across=across,
        values=values,
        headings=tuple(map(words.heading, values)),
        show=read.view.show,
        base=read.sign,
        drawn=_drawn(read),
        rows=_rows(read, made, values),
        note=_note(read),
        footnotes=tuple(_footnote(read, note, made) for note in footnotes(made, letters)),
        warnings=tuple(_warnings(read, records, made)),
        conclusions=(*(referred(read, by_value, across) if read.spans else ()), *open_lines(by_value)),
    )


def _note(read: Reading) -> str:
    """How to read the places, with what is told nowhere else."""
    ratio = any(MEASURES[name].ratio for name in read.view.show)
    note = PIVOT_NOTE.format("last" if WORDS[read.view.across].rising else "first")
    return " ".join((note, *([NO_QUOTIENT] * ratio), *([OPEN_NOTE] * (read.view.across == "open"))))


def _rows(read: Reading, made: Sequence[Entry], values: Sequence[Value]) -> tuple[PivotRow, ...]:
    """By requests per second at the greatest value of an axis of load, else at the first: an order to find them by."""
    by_name: dict[str, dict[Value, PivotCell]] = {}
    for entry in made:
        by_name.setdefault(entry.name, {})[_value(read, entry.record)] = _cell(read, entry)
    rows = [PivotRow(name, tuple(found.get(value) for value in values)) for name, found in by_name.items()]
    step = -1 if WORDS[read.view.across].rising else 1
    return tuple(sorted(rows, key=lambda row: ([-_rps(cell) for cell in row.cells[::step]], row.name)))


def _warnings(read: Reading, records: Sequence[Record], made: Sequence[Entry]) -> Iterator[str]:
    """What is wrong with the rows that ratios refer to, where they are shown: by comparison."""
    if not {"ratio", "cpu-ratio"} & {*read.view.show}:
        return
    across, by_id = read.view.across, {entry.record.id: entry for entry in made}
    if read.run.against or across not in read.axes:
        yield from reference_warnings(read, made)
        return
    groups = {_value(read, group[0]): group for group in read.groups(records)}
    words = WORDS[across]
    for value in ordered(groups):
        for text in reference_warnings(read, [by_id[record.id] for record in groups[value]]):
            yield f"{words.at.capitalize()} {words.title(value) or words.heading(value)}: {text}"


def _cell(read: Reading, entry: Entry) -> PivotCell:
    record, summary = entry.record, entry.record.summary
    return PivotCell(
        id=record.id,
        texts=(outcome_of(record),) if summary is None else () if entry.void else tuple(_texts(read, entry, summary)),
        marks=entry.marks,
        void=entry.void,
        outside=entry.outside,
        bound=entry.bound,
        overloaded=overloaded(entry.record),
        drawn=_estimate(read, entry, summary) if summary and not entry.void else None,
        summary=summary,
    )


def _texts(read: Reading, entry: Entry, summary: Summary) -> Iterator[str]:
    """A ratio that there is not is left out."""
    for name in read.view.show:
        text = bare(name, entry, summary)
        if _fits(read, name, entry) and not (MEASURES[name].ratio and text == NONE):
            yield text
    if overloaded(entry.record):
        yield "overloaded"


def _fits(read: Reading, name: str, entry: Entry) -> bool:
    """Beside a closed loop an open one shows what the closed one cannot tell."""
    loop = "open" if entry.record.cell.open else "closed"
    return read.view.across != "open" or MEASURES[name].loop in ("", loop)


def _drawn(read: Reading) -> str:
    """The first figure; of an open loop the last one that tells something of it."""
    of_open = [name for name in read.view.show if MEASURES[name].loop == "open"]
    return of_open[-1] if read.view.across == "open" and of_open else read.view.show[0]


def _estimate(read: Reading, entry: Entry, summary: Summary) -> Estimate | None:
    measure = MEASURES[_drawn(read)]
    shown = _fits(read, _drawn(read), entry) and not (measure.ratio and entry.baseless)
    return measure.estimate(summary) if shown else None


def _rps(cell: PivotCell | None) -> float:
    return cell.summary.rps.value if cell and cell.summary and not cell.void else 0.0


def _footnote(read: Reading, note: Footnote, made: Sequence[Entry]) -> Footnote:
    """With the values at which each row has it; what was seen there stands under the tables."""
    hits: dict[str, list[Value]] = {}
    for entry in made:
        if any(key(verdict) == (note.rule, note.effect) for verdict in entry.record.verdicts):
            hits.setdefault(entry.name, []).append(_value(read, entry.record))
    words = WORDS[read.view.across]
    told = {
        name: f"{words.at} {listed([words.heading(value) for value in ordered(found)])}" for name, found in hits.items()
    }
    return replace(note, rows=tuple(told.items()))
