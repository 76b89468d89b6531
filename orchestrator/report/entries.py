"""The records of one comparison, put in order: names, ranks, letters of their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count as counter
from string import ascii_lowercase
from typing import Any

from orchestrator.cells.model import DOT
from orchestrator.records.model import Estimate, Record, VerdictRecord
from orchestrator.report.order import Rank, Span, ranks, span
from orchestrator.report.text import count

_AXES = (
    ("app", "{}"),
    ("flavour", "{}"),
    ("mode", "{}"),
    ("python", "py{}"),
    ("workers", "w{}"),
    ("threads", "t{}"),
    ("tuned", "tuned"),
)


@dataclass(frozen=True)
class Entry:
    """A record with what its table says of it. `rank` is None where it stands outside the order."""

    record: Record
    name: str
    marks: str
    rank: Rank | None = None
    span: Span | None = None

    @property
    def void(self) -> bool:
        return "void" in effects(self.record)

    @property
    def bound(self) -> bool:
        return "bound" in effects(self.record)

    @property
    def reference(self) -> bool:
        """Whether this is the very row that ratios refer to (a baseline's variant may stand in several)."""
        ratio = self.record.summary.ratio if self.record.summary else None
        return self.record.baseline and ratio == Estimate(value=1.0, low=1.0, high=1.0)


def effects(record: Record) -> set[str]:
    return {verdict.effect for verdict in record.verdicts}


def entries(records: Sequence[Record], letters: Mapping[tuple[str, str], str]) -> tuple[Entry, ...]:
    """Those with figures: ranked ones by value, then unranked, then void ones; without figures last, by name."""
    names = names_of(records)
    made = [Entry(record, names[record.id], marks(record, letters)) for record in records]
    made.sort(key=lambda entry: (_class(entry.record), -_rps(entry.record), entry.name))
    return _ranked([entry for entry in made if _class(entry.record) == 0]) + tuple(
        entry for entry in made if _class(entry.record) > 0
    )


def names_of(records: Sequence[Record]) -> dict[str, str]:
    """By id: server/variant, the app, and whatever else differs among the records; `wheel` and connections unsaid."""
    varying = [(axis, form) for axis, form in _AXES if axis == "app" or len(_values(records, axis)) > 1]
    return {record.id: _name(record, varying) for record in records}


def common(records: Sequence[Record]) -> str:
    """The axes that do not differ, in words."""
    same: dict[str, Any] = {axis: found[0] for axis, _ in _AXES if len(found := _values(records, axis)) == 1}
    words = [same[axis] for axis in ("flavour", "mode") if axis in same]
    words += [] if "mode" in same else ["wheels where not marked sdist"]
    words += [f"Python {same['python']}"] if "python" in same else []
    words += [count(same["workers"], "worker")] if "workers" in same else []
    words += [f"{count(same['threads'], 'thread')} where a server has threads"] if "threads" in same else []
    return ", ".join(words)


def letters_of(records: Sequence[Record]) -> dict[tuple[str, str], str]:
    """A letter for every rule and effect that fired, the gravest first."""
    gravity = ("void", "unranked", "bound", "mark")
    fired = sorted({key(v) for record in records for v in record.verdicts}, key=lambda k: (gravity.index(k[1]), k[0]))
    return dict(zip(fired, _letters(len(fired)), strict=True))


def key(verdict: VerdictRecord) -> tuple[str, str]:
    """What tells footnotes apart: one rule may have two effects."""
    return verdict.rule, verdict.effect


def marks(record: Record, letters: Mapping[tuple[str, str], str]) -> str:
    return " ".join(sorted(letters[name] for name in {key(verdict) for verdict in record.verdicts}))


def _letters(number: int) -> list[str]:
    """a … z, a2 … z2, …"""
    rows = counter(1)
    found: list[str] = []
    while len(found) < number:
        row = next(rows)
        found += [letter if row == 1 else f"{letter}{row}" for letter in ascii_lowercase]
    return found[:number]


def _class(record: Record) -> int:
    if record.summary is None:
        return 3
    found = effects(record)
    return 2 if "void" in found else 1 if "unranked" in found else 0


def _rps(record: Record) -> float:
    """What rows are sorted by; void figures are not printed, so they do not sort either."""
    return record.summary.rps.value if record.summary and _class(record) < 2 else 0.0


def _ranked(made: Sequence[Entry]) -> tuple[Entry, ...]:
    estimates = _estimates(made)
    order = sorted(range(len(made)), key=lambda at: (-estimates[at].value, made[at].name))
    spans = [span(estimates[at], bound=made[at].bound) for at in order]
    return tuple(
        Entry(made[at].record, made[at].name, made[at].marks, rank, where)
        for at, rank, where in zip(order, ranks(spans), spans, strict=True)
    )


def _estimates(made: Sequence[Entry]) -> list[Estimate]:
    """Ratios where every row has one to a printed baseline, for what a round does to all cancels in them. Else rps."""
    summaries = [entry.record.summary for entry in made if entry.record.summary]
    ratios = [summary.ratio for summary in summaries if summary.ratio]
    usable = len(ratios) == len(summaries) and any(entry.reference for entry in made)
    return ratios if usable else [summary.rps for summary in summaries]


def _values(records: Sequence[Record], axis: str) -> list[object]:
    """The different values of an axis; a server without threads does not make threads differ."""
    found = [getattr(record.cell, axis) for record in records]
    return list(dict.fromkeys(value for value in found if value is not None))


def _name(record: Record, varying: Sequence[tuple[str, str]]) -> str:
    cell = record.cell
    shown = [
        form.format(value) for axis, form in varying if (value := getattr(cell, axis)) not in (None, "wheel", False)
    ]
    return DOT.join((f"{cell.server}/{cell.variant}", *shown))
