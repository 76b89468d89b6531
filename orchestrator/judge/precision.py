"""When enough rounds are measured: every ratio is known to the precision asked for, or no further round is allowed.

Without a precision asked for, rounds that lie so far apart that a figure is not known to half of itself are not left at
that: a few more are measured.

Cells that are compared with each other are measured in the same rounds or not at all, so a whole group goes on until
each ratio in it is known.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from orchestrator.evidence.model import Record
from orchestrator.figures import Estimate
from orchestrator.matrix.expand import Selection
from orchestrator.matrix.models import Schedule

FEWEST = 3
"""Rounds that give an interval worth mending: with two, Student's quantile alone is 12.7."""

FAR_APART = 0.5
"""A half-width over the figure beyond which rounds are added: one such as 10k (4k–16k) tells nobody anything."""

NAMED = 3
"""So many cells are named where more are not precise enough."""


def half_width(ratio: Estimate) -> float:
    """Half of the 95 % interval over the ratio; infinite where a single round gives no interval."""
    return math.inf if ratio.low is None or ratio.high is None else (ratio.high - ratio.low) / 2 / ratio.value


def wide(records: Sequence[Record], precision: float) -> dict[str, float]:
    """By id, the widest first: half-widths of the ratios that are not known to `precision`.

    Void figures, and those that refer to a void one, are no ratios: no round would mend them.
    """
    void = {record.id for record in records if _void(record)}
    found = {
        record.id: half_width(record.summary.ratio)
        for record in records
        if record.summary and record.summary.ratio and not {record.id, record.reference} & void
    }
    return {own: found[own] for own in sorted(found, key=lambda own: -found[own]) if found[own] > precision}


def most_rounds(schedule: Schedule) -> int:
    """So many rounds at the most. Fewer than three give no interval that is worth mending."""
    if schedule.precision:
        return schedule.max_rounds
    return schedule.rounds + (schedule.extra_rounds if schedule.rounds >= FEWEST else 0)


def far_apart(records: Sequence[Record]) -> dict[str, float]:
    """By id, the widest first: half-widths beyond FAR_APART of throughput, or of its ratio where that is wider.

    Void figures are left out, and open loops, whose throughput is what was asked for.
    """
    found = {
        record.id: max(half_width(one) for one in (record.summary.rps, record.summary.ratio) if one is not None)
        for record in records
        if record.summary and len(record.rounds) >= FEWEST and not record.cell.open and not _void(record)
    }
    return {own: found[own] for own in sorted(found, key=lambda own: -found[own]) if FAR_APART < found[own] < math.inf}


def open_after(records: Sequence[Record], schedule: Schedule) -> dict[str, float]:
    """By id, the widest first: half-widths for whose sake another round is wanted, if one is allowed."""
    return wide(records, schedule.precision) if schedule.precision else far_apart(records)


def _void(record: Record) -> bool:
    return any(verdict.effect == "void" for verdict in record.verdicts)


def unfinished(selection: Selection, imprecise: Collection[str]) -> frozenset[str]:
    """Ids of the cells that must be measured on: all that share a reference with an imprecise one."""
    group = groups(selection)
    open_groups = {group[own] for own in imprecise}
    return frozenset(own for own, its in group.items() if its in open_groups)


def groups(selection: Selection) -> Mapping[str, str]:
    """By cell id: the reference of its closed loop, or that one itself where it has none."""
    references = selection.references()
    return {cell.id: references.get(cell.closed.id, cell.closed.id) for cell in selection.cells}


def progress(number: int, records: Sequence[Record], precision: float) -> str:
    """One line for people after a round."""
    imprecise = wide(records, precision)
    if not imprecise:
        return f"after round {number} every ratio is known to {percent(precision)}"
    widest, width = next(iter(imprecise.items()))
    count = f"{len(imprecise)} ratio{'s are' if len(imprecise) > 1 else ' is'}"
    return f"after round {number} {count} not yet known to {percent(precision)}, {widest} to {percent(width)}"


def stopped(records: Sequence[Record], precision: float) -> str:
    """Why no further round was measured."""
    rounds, imprecise = max((len(record.rounds) for record in records), default=0), wide(records, precision)
    after = f"{rounds} round{'s' * (rounds != 1)}"
    if not any(record.summary and record.summary.ratio and record.id != record.reference for record in records):
        return f"there is no ratio to know: after {after}"
    if not imprecise:
        return f"every ratio is known to {percent(precision)}: after {after}"
    named = ", ".join(f"{own} ({percent(width)})" for own, width in list(imprecise.items())[:NAMED])
    more = f" and {len(imprecise) - NAMED} more" if len(imprecise) > NAMED else ""
    return f"{after}, the most asked for; not within {percent(precision)}: {named}{more}"


def added(number: int, records: Sequence[Record], schedule: Schedule) -> str:
    """One line for people where a round is added, or was; '' where rounds agree as they should."""
    far, more = far_apart(records), number - schedule.rounds
    if far and number < most_rounds(schedule):
        widest, width = next(iter(far.items()))
        return f"rounds lie far apart, {widest} is known to {percent(width)} alone: one more is measured"
    since = f"{more} more than planned, since rounds lay far apart"
    if not far:
        return f"after round {number}, {since}, every figure is known to {percent(FAR_APART)}" if more > 0 else ""
    named = ", ".join(f"{own} ({percent(width)})" for own, width in list(far.items())[:NAMED])
    return f"after {number} rounds{f', {since}' if more > 0 else ''}, still not within {percent(FAR_APART)}: {named}"


def percent(share: float) -> str:
    """`3 %`, `4.1 %`."""
    return "unknown" if math.isinf(share) else f"{float(f'{share * 100:.2g}'):g} %"
