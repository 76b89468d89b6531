"""One table per comparison, in the form that every renderer lays out: all texts decided, raw figures beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.records.model import Record, RunFile, Summary
from orchestrator.report.conclusions import conclusions, warnings
from orchestrator.report.entries import Entry, common, entries, key, letters_of
from orchestrator.report.text import NONE, count, interval, scaled, three

_SIGNS = {"": "", ">=": "≥", "<=": "≤"}
EFFECTS = {
    "void": "no figure is printed",
    "unranked": "stands outside the order",
    "bound": "a lower bound, never ranked as if exact",
    "mark": "marked",
}


@dataclass(frozen=True)
class Row:
    """A cell with figures. `texts`: one per column of the table; `summary`: the raw figures, also of void rows."""

    id: str
    name: str
    baseline: bool
    rank: int | None
    tied: bool
    void: bool
    bound: bool
    marks: str
    texts: tuple[str, ...]
    summary: Summary


@dataclass(frozen=True)
class Missing:
    """A cell without figures."""

    id: str
    name: str
    outcome: str
    reason: str
    marks: str


@dataclass(frozen=True)
class Footnote:
    """A verdict: what it does, its cure, and what it saw in each row, by name."""

    letter: str
    rule: str
    effect: str
    cure: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """`warnings` concern all rows; `conclusions` say what the figures hold up and what not."""

    title: str
    common: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    missing: tuple[Missing, ...]
    footnotes: tuple[Footnote, ...]
    warnings: tuple[str, ...]
    conclusions: tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """`figure`: printed as — where the row is void."""

    title: str
    text: Callable[[Entry, Summary], str]
    figure: bool = True


def tables(run: RunFile, records: Sequence[Record]) -> tuple[Table, ...]:
    """One per workload, TLS and connections, in the order in which they first stand in the run."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for record in of_load(records):
        cell = record.cell
        groups.setdefault((cell.workload, cell.tls, cell.connections), []).append(record)
    return tuple(_table(run, group) for group in groups.values())


def of_load(records: Sequence[Record]) -> list[Record]:
    """Those that the tables of throughput are about."""
    return [record for record in records if record.probe == "load"]


def title_of(record: Record, *, connections: bool = True) -> str:
    """item, TLS, 32 connections."""
    cell = record.cell
    parts = [cell.workload, "TLS" if cell.tls else "", count(cell.connections, "connection") if connections else ""]
    return ", ".join(filter(None, parts))


def footnotes(made: Sequence[Entry], letters: Mapping[tuple[str, str], str]) -> tuple[Footnote, ...]:
    """One per rule and effect, with every row that it concerns."""
    found = []
    for (rule, effect), letter in letters.items():
        hits = [(e.name, v) for e in made for v in e.record.verdicts if key(v) == (rule, effect)]
        rows = tuple((name, _seen(verdict.text, verdict.slices, verdict.of)) for name, verdict in hits)
        found.append(Footnote(letter, rule, effect, hits[0][1].cure, rows))
    return tuple(found)


def missing_of(entry: Entry) -> Missing:
    record = entry.record
    reason = record.reason.line if record.reason else NONE
    return Missing(record.id, entry.name, outcome_of(record), reason, entry.marks)


def outcome_of(record: Record) -> str:
    """In words: not installed."""
    return record.outcome.replace("_", " ")


def rps_text(entry: Entry, summary: Summary) -> str:
    return interval(summary.rps, "≥" if entry.bound else "")


def ratio_text(entry: Entry, summary: Summary) -> str:
    """`baseline` in its own row; `?` where both sides are lower bounds, since their ratio may then be anything."""
    if entry.reference:
        return "baseline"
    if summary.ratio is None:
        return NONE
    return "?" if summary.ratio_bound == "?" else interval(summary.ratio, _SIGNS[summary.ratio_bound])


COLUMNS = (
    Column("rank", lambda entry, _: _rank_text(entry), figure=False),
    Column("server", lambda entry, _: entry.name, figure=False),
    Column("requests/s", rps_text),
    Column("× baseline", ratio_text),
    Column("p50 ms", lambda _, summary: scaled(summary.latency_us.get("p50"), 1e3)),
    Column("p99 ms", lambda _, summary: scaled(summary.latency_us.get("p99"), 1e3)),
    Column("ceiling", lambda _, s: f"{s.ceiling_share:.0%}" if s.ceiling_share else NONE),
    Column("CPU µs/req", lambda _, s: three(s.cpu_us_per_request.value) if s.cpu_us_per_request else NONE),
    Column("MB", lambda _, summary: scaled(summary.memory_bytes, 1e6)),
    Column("conn/req", lambda _, summary: three(summary.connections_per_request)),
    Column("marks", lambda entry, _: entry.marks, figure=False),
)


def _table(run: RunFile, records: Sequence[Record]) -> Table:
    letters = letters_of(records)
    made = entries(records, letters)
    void_baseline = any(entry.reference and entry.void for entry in made)
    return Table(
        title=title_of(records[0]),
        common=common(records),
        columns=tuple(column.title for column in COLUMNS),
        rows=tuple(_row(entry, entry.record.summary, void_baseline) for entry in made if entry.record.summary),
        missing=tuple(missing_of(entry) for entry in made if entry.record.summary is None),
        footnotes=footnotes(made, letters),
        warnings=warnings(run.baseline, made),
        conclusions=conclusions(run.baseline, made),
    )


def _row(entry: Entry, summary: Summary, void_baseline: bool) -> Row:
    shown = summary.model_copy(update={"ratio": None}) if void_baseline else summary
    return Row(
        id=entry.record.id,
        name=entry.name,
        baseline=entry.record.baseline,
        rank=entry.rank.number if entry.rank else None,
        tied=bool(entry.rank and entry.rank.tied),
        void=entry.void,
        bound=entry.bound,
        marks=entry.marks,
        texts=tuple(NONE if column.figure and entry.void else column.text(entry, shown) for column in COLUMNS),
        summary=summary,
    )


def _rank_text(entry: Entry) -> str:
    return f"{entry.rank.number}{'=' * entry.rank.tied}" if entry.rank else ""


def _seen(text: str, slices: int, of: int) -> str:
    return f"{text}, in {slices} of {of} slices" if of else text
