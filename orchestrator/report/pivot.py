"""Servers × connections, for a suite that measures several numbers of connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.records.model import Record, RunFile, Summary
from orchestrator.report.conclusions import baseline_warning
from orchestrator.report.entries import Entry, common, entries, key, letters_of
from orchestrator.report.table import Footnote, footnotes, of_load, outcome_of, ratio_text, rps_text, title_of
from orchestrator.report.text import NONE, count, listed

PIVOT_NOTE = "“≥”: a lower bound; “—”: no figure; the order of the rows is no ranking. Intervals: see the tables."


@dataclass(frozen=True)
class PivotCell:
    """The texts of a cell (without intervals, which the tables have) and its raw figures."""

    id: str
    rps: str
    ratio: str
    marks: str
    void: bool
    outside: bool
    bound: bool
    summary: Summary | None

    @property
    def text(self) -> str:
        """≥12.3k · 1.4× a"""
        ratio = "" if self.ratio == NONE else f" · {self.ratio}"
        return f"{self.rps}{ratio}{' ' * bool(self.marks)}{self.marks}"


@dataclass(frozen=True)
class PivotRow:
    """One cell for each number of connections; None where it is not part of the run."""

    name: str
    cells: tuple[PivotCell | None, ...]


@dataclass(frozen=True)
class Pivot:
    """Rows by requests per second at the most connections: an order to find them by, no ranking."""

    title: str
    common: str
    connections: tuple[int, ...]
    rows: tuple[PivotRow, ...]
    footnotes: tuple[Footnote, ...]
    warnings: tuple[str, ...]


def pivots(run: RunFile, records: Sequence[Record]) -> tuple[Pivot, ...]:
    """One per workload and TLS that has two numbers of connections or more."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for record in of_load(records):
        groups.setdefault((record.cell.workload, record.cell.tls), []).append(record)
    return tuple(_pivot(run, group) for group in groups.values() if len(_connections(group)) > 1)


def _connections(records: Sequence[Record]) -> tuple[int, ...]:
    return tuple(sorted({record.cell.connections for record in records}))


def _pivot(run: RunFile, records: Sequence[Record]) -> Pivot:
    letters, connections = letters_of(records), _connections(records)
    made = entries(records, letters)
    void = {entry.record.cell.connections for entry in made if entry.reference and entry.void}
    by_name: dict[str, dict[int, PivotCell]] = {}
    for entry in made:
        number = entry.record.cell.connections
        by_name.setdefault(entry.name, {})[number] = _cell(entry, number in void)
    rows = [PivotRow(name, tuple(found.get(number) for number in connections)) for name, found in by_name.items()]
    rows.sort(key=lambda row: ([-_rps(cell) for cell in reversed(row.cells)], row.name))
    return Pivot(
        title=title_of(records[0], connections=False),
        common=common(records),
        connections=connections,
        rows=tuple(rows),
        footnotes=tuple(_footnote(note, made) for note in footnotes(made, letters)),
        warnings=_warnings(run.baseline, made, connections),
    )


def _warnings(baseline: str, made: Sequence[Entry], connections: Sequence[int]) -> tuple[str, ...]:
    """What is wrong with the baseline, by connections."""
    references = {entry.record.cell.connections: entry for entry in made if entry.reference}
    found = [(number, baseline_warning(baseline, references.get(number))) for number in connections]
    return tuple(f"At {count(number, 'connection')}: {text}" for number, text in found if text)


def _cell(entry: Entry, void_baseline: bool) -> PivotCell:
    record, summary = entry.record, entry.record.summary
    shown = summary is not None and not entry.void
    return PivotCell(
        id=record.id,
        rps=rps_text(entry, _bare(summary)) if summary and shown else NONE if summary else outcome_of(record),
        ratio=_ratio(entry, _bare(summary)) if summary and shown and not void_baseline else NONE,
        marks=entry.marks,
        void=entry.void,
        outside=entry.rank is None,
        bound=entry.bound,
        summary=summary,
    )


def _ratio(entry: Entry, summary: Summary) -> str:
    text = ratio_text(entry, summary)
    return f"{text}×" if summary.ratio and not entry.reference and text != "?" else text


def _bare(summary: Summary) -> Summary:
    """Without intervals."""
    values: Mapping[str, object] = {
        name: estimate.model_copy(update={"low": None, "high": None})
        for name in ("rps", "ratio")
        if (estimate := getattr(summary, name)) is not None
    }
    return summary.model_copy(update=values)


def _rps(cell: PivotCell | None) -> float:
    return cell.summary.rps.value if cell and cell.summary and not cell.void else 0.0


def _footnote(note: Footnote, made: Sequence[Entry]) -> Footnote:
    """With the connections at which each row has it; what was seen there stands under the tables."""
    hits: dict[str, list[int]] = {}
    for entry in made:
        if any(key(verdict) == (note.rule, note.effect) for verdict in entry.record.verdicts):
            hits.setdefault(entry.name, []).append(entry.record.cell.connections)
    told = {name: f"at {listed([str(number) for number in sorted(numbers)])}" for name, numbers in hits.items()}
    return replace(note, rows=tuple(told.items()))
