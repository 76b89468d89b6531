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
from orchestrator.report.compared_run import ComparedRun, compared_run
from orchestrator.report.conclusions import referred
from orchestrator.report.measures import MEASURES, bare, heading
from orchestrator.report.openloop import OPEN_NOTE, open_lines, overloaded
from orchestrator.report.references import reference_warnings
from orchestrator.report.standings import Standing, common, key, letters_of, standings
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
    compared = compared_run(run, records)
    if compared.view.across not in WORDS:
        return ()
    across = compared.view.across
    groups = [group for group in compared.groups(compared.records, across) if len(_values(compared, group)) > 1]
    made = [
        attempt(f"The table of {compared.title(group[0], across)}", partial(_pivot, compared, group))
        for group in groups
    ]
    return tuple(chain.from_iterable(made))


def _values(compared: ComparedRun, records: Sequence[Record]) -> tuple[Value, ...]:
    return ordered(_value(compared, record) for record in records)


def _value(compared: ComparedRun, record: Record) -> Value:
    found: Value = getattr(record.cell, compared.view.across)
    return found


def _pivot(compared: ComparedRun, records: Sequence[Record]) -> Pivot:
    across, letters, values = compared.view.across, letters_of(records), _values(compared, records)
    words = WORDS[across]
    made = standings(compared, records, letters, across)
    by_value = sorted(made, key=lambda standing: values.index(_value(compared, standing.record)))
    show = " · ".join(heading(name, compared.sign) for name in compared.view.show)
    return Pivot(
        title=compared.title(records[0], across),
        told=f"{show}, by {words.by}",
        common=common(records, across),
        across=across,
        values=values,
        headings=tuple(map(words.heading, values)),
        show=compared.view.show,
        base=compared.sign,
        drawn=_drawn(compared),
        rows=_rows(compared, made, values),
        note=_note(compared),
        footnotes=tuple(_footnote(compared, note, made) for note in footnotes(made, letters)),
        warnings=tuple(_warnings(compared, records, made)),
        conclusions=(*(referred(compared, by_value, across) if compared.spans else ()), *open_lines(by_value)),
    )


def _note(compared: ComparedRun) -> str:
    """How to read the places, with what is told nowhere else."""
    ratio = any(MEASURES[name].ratio for name in compared.view.show)
    note = PIVOT_NOTE.format("last" if WORDS[compared.view.across].rising else "first")
    return " ".join((note, *([NO_QUOTIENT] * ratio), *([OPEN_NOTE] * (compared.view.across == "open"))))


def _rows(compared: ComparedRun, made: Sequence[Standing], values: Sequence[Value]) -> tuple[PivotRow, ...]:
    """By requests per second at the greatest value of an axis of load, else at the first: an order to find them by."""
    by_name: dict[str, dict[Value, PivotCell]] = {}
    for standing in made:
        by_name.setdefault(standing.name, {})[_value(compared, standing.record)] = _cell(compared, standing)
    rows = [PivotRow(name, tuple(found.get(value) for value in values)) for name, found in by_name.items()]
    step = -1 if WORDS[compared.view.across].rising else 1
    return tuple(sorted(rows, key=lambda row: ([-_rps(cell) for cell in row.cells[::step]], row.name)))


def _warnings(compared: ComparedRun, records: Sequence[Record], made: Sequence[Standing]) -> Iterator[str]:
    """What is wrong with the rows that ratios refer to, where they are shown: by comparison."""
    if not {"ratio", "cpu-ratio"} & {*compared.view.show}:
        return
    across, by_id = compared.view.across, {standing.record.id: standing for standing in made}
    if compared.run.against or across not in compared.axes:
        yield from reference_warnings(compared, made)
        return
    groups = {_value(compared, group[0]): group for group in compared.groups(records)}
    words = WORDS[across]
    for value in ordered(groups):
        for text in reference_warnings(compared, [by_id[record.id] for record in groups[value]]):
            yield f"{words.at.capitalize()} {words.title(value) or words.heading(value)}: {text}"


def _cell(compared: ComparedRun, standing: Standing) -> PivotCell:
    record, summary = standing.record, standing.record.summary
    return PivotCell(
        id=record.id,
        texts=(outcome_of(record),)
        if summary is None
        else ()
        if standing.void
        else tuple(_texts(compared, standing, summary)),
        marks=standing.marks,
        void=standing.void,
        outside=standing.outside,
        bound=standing.bound,
        overloaded=overloaded(standing.record),
        drawn=_estimate(compared, standing, summary) if summary and not standing.void else None,
        summary=summary,
    )


def _texts(compared: ComparedRun, standing: Standing, summary: Summary) -> Iterator[str]:
    """A ratio that there is not is left out."""
    for name in compared.view.show:
        text = bare(name, standing, summary)
        if _fits(compared, name, standing) and not (MEASURES[name].ratio and text == NONE):
            yield text
    if overloaded(standing.record):
        yield "overloaded"


def _fits(compared: ComparedRun, name: str, standing: Standing) -> bool:
    """Beside a closed loop an open one shows what the closed one cannot tell."""
    loop = "open" if standing.record.cell.open else "closed"
    return compared.view.across != "open" or MEASURES[name].loop in ("", loop)


def _drawn(compared: ComparedRun) -> str:
    """The first figure; of an open loop the last one that tells something of it."""
    of_open = [name for name in compared.view.show if MEASURES[name].loop == "open"]
    return of_open[-1] if compared.view.across == "open" and of_open else compared.view.show[0]


def _estimate(compared: ComparedRun, standing: Standing, summary: Summary) -> Estimate | None:
    measure = MEASURES[_drawn(compared)]
    shown = _fits(compared, _drawn(compared), standing) and not (measure.ratio and standing.baseless)
    return measure.estimate(summary) if shown else None


def _rps(cell: PivotCell | None) -> float:
    return cell.summary.rps.value if cell and cell.summary and not cell.void else 0.0


def _footnote(compared: ComparedRun, note: Footnote, made: Sequence[Standing]) -> Footnote:
    """With the values at which each row has it; what was seen there stands under the tables."""
    hits: dict[str, list[Value]] = {}
    for standing in made:
        if any(key(verdict) == (note.rule, note.effect) for verdict in standing.record.verdicts):
            hits.setdefault(standing.name, []).append(_value(compared, standing.record))
    words = WORDS[compared.view.across]
    told = {
        name: f"{words.at} {listed([words.heading(value) for value in ordered(found)])}" for name, found in hits.items()
    }
    return replace(note, rows=tuple(told.items()))
