"""Statistics of rounds and slices: pure functions over nested lists (one list of slice values per round).

Intervals come from a hierarchical bootstrap (Davison & Hinkley, Bootstrap Methods and their Application, 1997,
section 3.8): rounds are drawn with replacement, then slices within each drawn round. A ratio is that of slices of the
same pass, so that what the machine did to both cancels in it (docs/adr/0009-neighbours-are-compared.md).
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
REDRAWN = 1000
"""Resamples of whole histograms, which cost more."""

GREATEST = 700.0
"""The logarithm at which an interval ends at the latest: beyond it no float can hold the value."""

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
    """The geometric mean over rounds of the median of each round's slices (of two in the middle: theirs).

    All values must be positive. Raises ValueError where there are none.
    """
    kept = [values for values in rounds if len(values)]
    if not kept:
        raise ValueError("no values")
    return math.exp(float(_log_medians(kept).mean()))


def interval(rounds: Rounds, *, seed: int = 0) -> Interval:
    """`centre` with its bootstrap interval. All values must be positive."""
    kept = [values for values in rounds if len(values)]
    random = np.random.default_rng(seed)
    return _interval(centre(kept), _log_medians(kept), _resampled(kept, random), random)


def ratio(above: Rounds, below: Rounds, *, seed: int = 0) -> Interval:
    """The centre of the ratios of slices that stand at the same place: of one round and pass.

    All values must be positive. Raises ValueError where no place holds both.
    """
    ratios = [[a / b for a, b in zip(*slices, strict=False)] for slices in zip(above, below, strict=False)]
    if not any(ratios):
        raise ValueError("no round holds both")
    return interval(ratios, seed=seed)


def spread(rounds: Rounds) -> Spread:
    """None where there are fewer than two values to compare."""
    medians = [float(np.median(values)) for values in rounds if len(values)]
    inside = [float(np.std(values, ddof=1) / np.median(values)) for values in rounds if len(values) > 1]
    between = float(np.std(medians, ddof=1) / np.median(medians)) if len(medians) > 1 else None
    return Spread(between, float(np.median(inside)) if inside else None)


def percentiles(rounds: Sequence[Array], values: Array, wanted: Sequence[float], *, seed: int = 0) -> list[Interval]:
    """The wanted percentiles (99.0) of all samples together, with bootstrap intervals of the same statistic.

    A matrix for each round, slices × values: how often a slice saw each of `values`, which are positive and rise.
    Every slice holds samples. An interval ends at the least and the greatest sample at the latest.
    """
    if not wanted:
        return []
    random, count = np.random.default_rng(seed), len(rounds)
    merged = np.concatenate(rounds).sum(axis=0, keepdims=True)
    least, greatest = values[np.flatnonzero(merged[0])[[0, -1]]]
    known = _percentiles(merged, values, wanted)[0]
    if count < 2:
        return [Interval(float(value), None, None) for value in known]
    points = np.log(_percentiles(np.stack([slices.sum(axis=0) for slices in rounds]), values, wanted))
    inside = [_redrawn(slices, np.full(REDRAWN, len(slices)), random) for slices in rounds]
    within = np.stack([np.log(_percentiles(counts, values, wanted)) for counts in inside], axis=1)
    times = random.multinomial(count, [1 / count] * count, REDRAWN).T
    drawn = sum(_redrawn(slices, often * len(slices), random) for slices, often in zip(rounds, times, strict=True))
    draws = np.log(_percentiles(np.asarray(drawn), values, wanted))
    wide = (_widened(float(value), draws[:, at], points[:, at], within[:, :, at]) for at, value in enumerate(known))
    return [_inside(one, float(least), float(greatest)) for one in wide]


def _inside(found: Interval, least: float, greatest: float) -> Interval:
    low, high = (None if end is None else min(max(end, least), greatest) for end in (found.low, found.high))
    return Interval(found.value, low, high)


def _redrawn(slices: Array, times: npt.NDArray[np.int64], random: np.random.Generator) -> Array:
    """The counts of so many freshly drawn slices together: one row for each of `times`."""
    return np.asarray(random.multinomial(times, [1 / len(slices)] * len(slices)) @ slices)


def _percentiles(counts: Array, values: Array, wanted: Sequence[float]) -> Array:
    """Of each row of counts: rows × wanted. By rank, as HDR histograms do."""
    seen = counts.cumsum(axis=1)
    ranks = (np.maximum(np.floor(percent * seen[:, -1:] / 100 + 0.5), 1) for percent in wanted)
    return np.stack([values[(seen < rank).sum(axis=1)] for rank in ranks], axis=1)


def _log_medians(rounds: Rounds) -> Array:
    return np.array([np.median(np.log(values)) for values in rounds])


def _resampled(rounds: Rounds, random: np.random.Generator) -> Array:
    """Logs of medians of freshly drawn slices: RESAMPLES rows, one column per round."""
    columns = [np.log(values) for values in rounds]
    drawn = [slices[random.integers(0, len(slices), (RESAMPLES, len(slices)))] for slices in columns]
    return np.stack([np.median(picks, axis=1) for picks in drawn], axis=1)


def _interval(value: float, points: Array, resampled: Array, random: np.random.Generator) -> Interval:
    """The percentile interval of rounds drawn from `resampled`; `points` are the rounds' own logs."""
    count = len(points)
    if count < 2:
        return Interval(value, None, None)
    rows, columns = random.integers(0, RESAMPLES, (RESAMPLES, count)), random.integers(0, count, (RESAMPLES, count))
    return _widened(value, resampled[rows, columns].mean(axis=1), points, resampled)


def _widened(value: float, draws: Array, points: Array, resampled: Array) -> Interval:
    """The percentile interval of `draws`, logs of the value from rounds drawn anew, widened for their small number.

    Drawing n of n rounds understates their variance by (n - 1) / n. Where the rounds differ by more than their slices
    explain (`resampled`: a column per round), n values alone tell how much, so that share of the variance gets
    Student's quantile in the place of the normal one. tests/unit/judge/test_stats.py measures the coverage.
    """
    count = len(points)
    low, high = np.quantile(draws, [0.025, 0.975])
    variance = float(np.var(points, ddof=1))
    between = max(0.0, 1 - float(resampled.var(axis=0).mean()) / variance) if variance > 0 else 0.0
    wider = math.sqrt(count / (count - 1)) * (1 + between * (student(count - 1) / NORMAL - 1))
    middle = math.log(value)
    return Interval(
        value,
        math.exp(min(middle, middle + (float(low) - middle) * wider)),
        math.exp(min(max(middle, middle + (float(high) - middle) * wider), GREATEST)),
    )


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t; beyond ten degrees of freedom by the first term of its expansion in 1/n."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    return NORMAL + (NORMAL**3 + NORMAL) / (4 * freedom)
