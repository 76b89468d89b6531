"""Statistics of rounds and slices: pure functions over nested lists (one list of slice values per round).

Intervals come from a hierarchical bootstrap (Davison & Hinkley, Bootstrap Methods and their Application, 1997,
section 3.8): rounds are drawn with replacement, then slices within each drawn round. Side by side measured
values are drawn by the same rounds, so that what a round did to both cancels in their ratio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Rounds = Sequence[Sequence[float]]
Array = npt.NDArray[np.float64]

RESAMPLES = 4000


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; `low` and `high` are None where one round alone gives no interval."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Spread:
    """Relative spread (standard deviation over median): of the rounds' medians, and of slices inside a round."""

    between: float | None
    within: float | None


def centre(rounds: Rounds) -> float:
    """The geometric mean over rounds of the median of each round's slices. Raises ValueError where there are none."""
    medians = [float(np.median(values)) for values in rounds if len(values)]
    if not medians:
        raise ValueError("no values")
    return math.exp(sum(map(math.log, medians)) / len(medians)) if min(medians) > 0 else float(np.median(medians))


def interval(rounds: Rounds, *, seed: int = 0) -> Interval:
    """`centre` with its bootstrap interval. All values must be positive."""
    kept = [values for values in rounds if len(values)]
    draws = _log_medians(kept, _drawn_rounds(len(kept), seed), seed)
    return _interval(centre(kept), draws.mean(axis=1), len(kept))


def ratio(above: Rounds, below: Rounds, *, seed: int = 0) -> Interval:
    """The ratio of two centres over the rounds that hold both, rounds drawn in pairs. All values must be positive."""
    pairs = [(a, b) for a, b in zip(above, below, strict=False) if len(a) and len(b)]
    if not pairs:
        raise ValueError("no round holds both")
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    drawn = _drawn_rounds(len(pairs), seed)
    draws = _log_medians(first, drawn, seed) - _log_medians(second, drawn, seed + 1)
    return _interval(centre(first) / centre(second), draws.mean(axis=1), len(pairs))


def spread(rounds: Rounds) -> Spread:
    """None where there are fewer than two values to compare."""
    medians = [float(np.median(values)) for values in rounds if len(values)]
    inside = [float(np.std(values, ddof=1) / np.median(values)) for values in rounds if len(values) > 1]
    between = float(np.std(medians, ddof=1) / np.median(medians)) if len(medians) > 1 else None
    return Spread(between, float(np.median(inside)) if inside else None)


def overlap(one: Interval, other: Interval) -> bool:
    """Whether two intervals leave the order of their values open; an interval that is not known always does."""
    if None in (one.low, one.high, other.low, other.high):
        return True
    return bool(one.low <= other.high and other.low <= one.high)  # type: ignore[operator]


def _drawn_rounds(count: int, seed: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))


def _log_medians(rounds: Rounds, drawn: npt.NDArray[np.int64], seed: int) -> Array:
    """The log of the median of freshly drawn slices, for each place of `drawn` (resamples × rounds)."""
    random = np.random.default_rng([seed, 1])
    logs = np.empty(drawn.shape)
    for at, values in enumerate(rounds):
        slices = np.asarray(values, dtype=float)
        picks = random.integers(0, len(slices), (*drawn.shape, len(slices)))
        logs = np.where(drawn == at, np.log(np.median(slices[picks], axis=2)), logs)
    return logs


def _interval(value: float, log_draws: Array, rounds: int) -> Interval:
    """The percentile interval, widened by sqrt(n / (n - 1)): drawing n of n rounds understates their variance so."""
    if rounds < 2:
        return Interval(value, None, None)
    low, high = np.quantile(log_draws, [0.025, 0.975])
    middle, wider = math.log(value), math.sqrt(rounds / (rounds - 1))
    return Interval(
        value,
        math.exp(min(middle, middle + (float(low) - middle) * wider)),
        math.exp(max(middle, middle + (float(high) - middle) * wider)),
    )
