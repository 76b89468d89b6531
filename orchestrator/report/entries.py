"""The records of one comparison, put in order: names, ranks, letters of their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count as counter
from string import ascii_lowercase

from orchestrator.cells.model import DOT
from orchestrator.records.model import Estimate, Record, VerdictRecord
from orchestrator.report.axes import WORDS
from orchestrator.report.order import Rank, Span, ranks, span
from orchestrator.report.reading import Reading


@dataclass(frozen=True)
class Entry:
    """A record with what its table says of it. `rank` is None where it stands outside the order, or there is none.

    `base`: the record that its ratios refer to; `own`: what is printed for a ratio to itself.
    """

    record: Record
    name: str
    marks: str
    base: Record | None = None
    own: str = "baseline"
    rank: Rank | None = None
    span: Span | None = None

    @property
    def void(self) -> bool:
        return "void" in effects(self.record)

    @property
    def bound(self) -> bool:
        return "bound" in effects(self.record)

    @property
    def outside(self) -> bool:
        """Whether no conclusion may be drawn from it."""
        return self.record.summary is None or bool(effects(self.record) & {"void", "unranked"})

    @property
    def reference(self) -> bool:
        """Whether ratios refer to this very row (a baseline's variant may stand in several)."""
        return bool(self.record.reference) and self.record.reference == self.record.id

    @property
    def baseless(self) -> bool:
        """Whether what its ratios refer to has no figure that may be printed."""
        return self.base is None or self.base.summary is None or "void" in effects(self.base)


def effects(record: Record) -> set[str]:
    return {verdict.effect for verdict in record.verdicts}


def entries(
    read: Reading, records: Sequence[Record], letters: Mapping[tuple[str, str], str], *without: str
) -> tuple[Entry, ...]:
    """Those with figures: ranked ones by value, then unranked, then void ones; without figures last, by name.

    Names leave the axes of `without` unsaid. In an open loop nothing is ranked: how much came in was given.
    """
    names = names_of(records, *without)
    made = [Entry(record, names[record.id], marks(record, letters), read.base(record), read.own) for record in records]
    made.sort(key=lambda entry: (_class(entry.record), -_rps(entry.record), entry.name))
    ranked = [entry for entry in made if _in_order(entry.record)]
    return _ranked(ranked) + tuple(entry for entry in made if not _in_order(entry.record))


def names_of(records: Sequence[Record], *without: str) -> dict[str, str]:
    """By id: server/variant, the app, and whatever else differs among the records; `wheel` unsaid."""
    varying = [axis for axis in WORDS if axis == "app" or len(_values(records, axis)) > 1]
    told = [axis for axis in varying if axis not in without]
    return {record.id: _name(record, told) for record in records}


def common(records: Sequence[Record], *without: str) -> str:
    """The axes that do not differ, in words; nothing of those of `without`."""
    same = [axis for axis in WORDS if axis not in without and len(_values(records, axis)) == 1]
    words = {axis: WORDS[axis].title(_values(records, axis)[0]) for axis in same}
    if "mode" not in (*same, *without):
        words["mode"] = "wheels where not marked sdist"
    if "threads" in words:
        words["threads"] += " where a server has threads"
    return ", ".join(words[axis] for axis in ("flavour", "mode", "python", "workers", "threads") if axis in words)


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


def _in_order(record: Record) -> bool:
    return _class(record) == 0 and not record.cell.open


def _rps(record: Record) -> float:
    """What rows are sorted by; void figures are not printed, so they do not sort either."""
    return record.summary.rps.value if record.summary and _class(record) < 2 else 0.0


def _ranked(made: Sequence[Entry]) -> tuple[Entry, ...]:
    estimates = _estimates(made)
    order = sorted(range(len(made)), key=lambda at: (-estimates[at].value, made[at].name))
    spans = [span(estimates[at], bound=made[at].bound) for at in order]
    found = zip(order, ranks(spans), spans, strict=True)
    return tuple(replace(made[at], rank=rank, span=where) for at, rank, where in found)


def _estimates(made: Sequence[Entry]) -> list[Estimate]:
    """Ratios where all rows have one to the same ranked row, for what a round does to all cancels in them. Else rps."""
    summaries = [entry.record.summary for entry in made if entry.record.summary]
    ratios = [summary.ratio for summary in summaries if summary.ratio]
    return ratios if comparable(made) and len(ratios) == len(summaries) else [summary.rps for summary in summaries]


def comparable(made: Sequence[Entry]) -> bool:
    """Whether the ratios of these rows refer to one and the same of them."""
    return any(entry.reference for entry in made) and len({entry.record.reference for entry in made}) == 1


def _values(records: Sequence[Record], axis: str) -> list[object]:
    """The different values of an axis; a server without threads does not make threads differ."""
    found = [getattr(record.cell, axis) for record in records]
    return list(dict.fromkeys(value for value in found if value is not None))


def _name(record: Record, axes: Sequence[str]) -> str:
    cell = record.cell
    shown = (WORDS[axis].name(getattr(cell, axis)) for axis in axes)
    return DOT.join((f"{cell.server}/{cell.variant}", *filter(None, shown)))
