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
NORMAL = 1.960
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


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
    random = np.random.default_rng(seed)
    return _interval(centre(kept), _log_medians(kept), _resampled(kept, random), random)


def ratio(above: Rounds, below: Rounds, *, seed: int = 0) -> Interval:
    """The ratio of two centres over the rounds that hold both, rounds drawn in pairs. All values must be positive."""
    pairs = [(a, b) for a, b in zip(above, below, strict=False) if len(a) and len(b)]
    if not pairs:
        raise ValueError("no round holds both")
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    random = np.random.default_rng(seed)
    points = _log_medians(first) - _log_medians(second)
    resampled = _resampled(first, random) - _resampled(second, random)
    return _interval(centre(first) / centre(second), points, resampled, random)


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


def _log_medians(rounds: Rounds) -> Array:
    return np.log([float(np.median(values)) for values in rounds])


def _resampled(rounds: Rounds, random: np.random.Generator) -> Array:
    """Logs of medians of freshly drawn slices: RESAMPLES rows, one column per round."""
    columns = [np.asarray(values, dtype=float) for values in rounds]
    drawn = [slices[random.integers(0, len(slices), (RESAMPLES, len(slices)))] for slices in columns]
    return np.stack([np.log(np.median(picks, axis=1)) for picks in drawn], axis=1)


def _interval(value: float, points: Array, resampled: Array, random: np.random.Generator) -> Interval:
    """The percentile interval of rounds drawn from `resampled`, widened for the small number of rounds.

    `points` are the rounds' own logs. Drawing n of n rounds understates their variance by (n - 1) / n. Where the
    rounds differ by more than their slices explain, n values alone tell how much, so that share of the variance gets
    Student's quantile in the place of the normal one. tests/unit/verdicts/test_stats.py measures the coverage.
    """
    count = len(points)
    if count < 2:
        return Interval(value, None, None)
    rows, columns = random.integers(0, RESAMPLES, (RESAMPLES, count)), random.integers(0, count, (RESAMPLES, count))
    low, high = np.quantile(resampled[rows, columns].mean(axis=1), [0.025, 0.975])
    variance = float(np.var(points, ddof=1))
    between = max(0.0, 1 - float(resampled.var(axis=0).mean()) / variance) if variance > 0 else 0.0
    wider = math.sqrt(count / (count - 1)) * (1 + between * (student(count - 1) / NORMAL - 1))
    middle = math.log(value)
    return Interval(
        value,
        math.exp(min(middle, middle + (float(low) - middle) * wider)),
        math.exp(max(middle, middle + (float(high) - middle) * wider)),
    )


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t; beyond ten degrees of freedom by the first term of its expansion in 1/n."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    return NORMAL + (NORMAL**3 + NORMAL) / (4 * freedom)
