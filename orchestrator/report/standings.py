"""The records of one comparison, put in order: each with its name, its rank and the letters of its verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count as counter
from string import ascii_lowercase
from typing import Literal

from orchestrator.evidence.model import Record, Summary, VerdictRecord
from orchestrator.figures import Estimate
from orchestrator.matrix.cell import DOT
from orchestrator.report.axes import WORDS
from orchestrator.report.compared_run import ComparedRun
from orchestrator.report.order import Rank, Span, ranks, span

Figure = Literal["ratio", "rps", "asked"]


@dataclass(frozen=True)
class Standing:
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


def standings(
    compared: ComparedRun, records: Sequence[Record], letters: Mapping[tuple[str, str], str], *without: str
) -> tuple[Standing, ...]:
    """Those with figures: ranked ones, then unranked, then void ones; without figures last.

    All but void ones stand by the figure that `decisive` names, else by name. Names leave the axes of `without` unsaid.
    In an open loop nothing is ranked: how much came in was given.
    """
    names = names_of(records, *without)
    made = [
        Standing(record, names[record.id], marks(record, letters), compared.base(record), compared.own)
        for record in records
    ]
    figure = decisive(made)
    made.sort(key=lambda standing: (_class(standing.record), -_value(standing.record, figure), standing.name))
    ranked = [standing for standing in made if _in_order(standing.record)]
    return _ranked(ranked, figure) + tuple(standing for standing in made if not _in_order(standing.record))


def decisive(made: Sequence[Standing]) -> Figure:
    """The figure that rows stand by, and that ranks come from.

    Ratios where all ranked rows have one to the same ranked row, for what a round does to all cancels in them; else
    requests per second, of an open loop those that came in.
    """
    ranked = [standing for standing in made if _in_order(standing.record)]
    if not ranked:
        return "asked" if any(standing.record.cell.open for standing in made) else "rps"
    ratios = all(standing.record.summary and standing.record.summary.ratio for standing in ranked)
    return "ratio" if ratios and comparable(ranked) else "rps"


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


def _value(record: Record, figure: Figure) -> float:
    """What rows are sorted by; void figures are not printed, so they do not sort either."""
    found = _estimate(record.summary, figure) if record.summary and _class(record) < 2 else None
    return found.value if found else 0.0


def _estimate(summary: Summary, figure: Figure) -> Estimate | None:
    if figure == "asked":
        return None if summary.rate_asked is None else Estimate(value=summary.rate_asked, low=None, high=None)
    return summary.ratio if figure == "ratio" else summary.rps


def _ranked(made: Sequence[Standing], figure: Figure) -> tuple[Standing, ...]:
    estimates = [_estimate(standing.record.summary, figure) for standing in made if standing.record.summary]
    spans = [span(found, bound=standing.bound) for standing, found in zip(made, estimates, strict=True) if found]
    found = zip(made, ranks(spans), spans, strict=True)
    return tuple(replace(standing, rank=rank, span=where) for standing, rank, where in found)


def comparable(made: Sequence[Standing]) -> bool:
    """Whether the ratios of these rows refer to one and the same of them."""
    return any(standing.reference for standing in made) and len({standing.record.reference for standing in made}) == 1


def _values(records: Sequence[Record], axis: str) -> list[object]:
    """The different values of an axis; a server without threads does not make threads differ."""
    found = [getattr(record.cell, axis) for record in records]
    return list(dict.fromkeys(value for value in found if value is not None))


def _name(record: Record, axes: Sequence[str]) -> str:
    cell = record.cell
    shown = (WORDS[axis].name(getattr(cell, axis)) for axis in axes)
    return DOT.join((f"{cell.server}/{cell.variant}", *filter(None, shown)))
