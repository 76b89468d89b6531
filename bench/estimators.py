"""Estimators of the ratio of two servers from interleaved slices: pure functions over logarithms of costs.

A sample is one round. Its arrays hold one value per pass, `above` and `below` aligned; more axes in front stand for
resamples, so that all estimators work along the last axis. Every estimator gives the logarithm of the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from orchestrator.judge.stats import NORMAL, student

Array = npt.NDArray[np.float64]
Location = Callable[[Array], Array]

TRIM = 0.2
RESAMPLES = 400


@dataclass(frozen=True)
class Sample:
    """`controls`: by name, a covariate of each slice of `above` and of `below`, aligned with them."""

    above: Array
    below: Array
    controls: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)

    def drawn(self, picks: npt.NDArray[np.int64]) -> Sample:
        """The passes that `picks` names: what one pass did to both sides stays together."""
        controls = {name: (above[picks], below[picks]) for name, (above, below) in self.controls.items()}
        return Sample(self.above[picks], self.below[picks], controls)


Estimator = Callable[[Sample], Array]

# --- locations ------------------------------------------------------------------------------------------------------


def mean(values: Array) -> Array:
    return np.asarray(values.mean(axis=-1))


def median(values: Array) -> Array:
    """For normal noise its variance is π/2 of the mean's; it is worse where the noise has two peaks."""
    return np.asarray(np.median(values, axis=-1))


def trimmed(values: Array) -> Array:
    """The mean without the TRIM lowest and the TRIM highest (Tukey & McLaughlin, Sankhyā A 25, 1963)."""
    count = values.shape[-1]
    cut = int(TRIM * count)
    return np.asarray(np.sort(values, axis=-1)[..., cut : count - cut].mean(axis=-1))


def hodges_lehmann(values: Array) -> Array:
    """The median of the means of all pairs, each value with itself too (Hodges & Lehmann, Ann. Math. Stat. 34, 1963).

    For normal noise its variance is π/3 of the mean's.
    """
    one, other = np.triu_indices(values.shape[-1])
    return np.asarray(np.median((values[..., one] + values[..., other]) / 2, axis=-1))


def quiet(values: Array) -> Array:
    """The lowest tenth's upper end: what a request costs while the machine is quiet, if noise only adds."""
    return np.asarray(np.quantile(values, 0.1, axis=-1))


# --- estimators -----------------------------------------------------------------------------------------------------


def apart(location: Location) -> Estimator:
    """Each side by itself."""
    return lambda sample: location(sample.above) - location(sample.below)


def pairs(location: Location) -> Estimator:
    """Slices of one pass are subtracted first, as the product does it (with the median)."""
    return lambda sample: location(sample.above - sample.below)


def controlled(name: str, slope: float, location: Location = mean) -> Estimator:
    """With slope · covariate taken off each slice.

    It is unbiased if the covariate has the same expectation beside either side, and the slope does not come from the
    same slices (`slopes`): then the slope times the difference of the covariate's means has expectation nought.
    (Control variates: Lavenberg & Welch, Management Science 27, 1981, whose bias comes from a slope of the same data.)
    """

    def estimate(sample: Sample) -> Array:
        above, below = sample.controls[name]
        return location((sample.above - slope * above) - (sample.below - slope * below))

    return estimate


def slopes(samples: Sequence[Sample], name: str) -> list[float]:
    """For each round the least-squares slope on the covariate in all other rounds, centred by side and round."""
    moments = [_moments(sample, name) for sample in samples]
    product, square, _ = map(sum, zip(*moments, strict=True))
    others = [(product - one.product, square - one.square) for one in moments]
    return [rest / squared if squared > 0 else 0.0 for rest, squared in others]


def correlation(samples: Sequence[Sample], name: str) -> float:
    """Of slices with a covariate, centred by side and round."""
    product, square, own = map(sum, zip(*(_moments(sample, name) for sample in samples), strict=True))
    return float(product / math.sqrt(square * own)) if square * own > 0 else 0.0


class Moments(NamedTuple):
    """Sums over a round's slices: of value · covariate, covariate², value², all centred."""

    product: float
    square: float
    own: float


def _moments(sample: Sample, name: str) -> Moments:
    sides = list(zip((sample.above, sample.below), sample.controls[name], strict=True))
    centred = [(values - values.mean(), control - control.mean()) for values, control in sides]
    return Moments(
        product=sum(float(values @ control) for values, control in centred),
        square=sum(float(control @ control) for _, control in centred),
        own=sum(float(values @ values) for values, _ in centred),
    )


# --- intervals ------------------------------------------------------------------------------------------------------


def by_rounds(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half-width of Student's 95 % interval of two or more rounds' values."""
    return float(np.mean(values)), student(len(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(len(values))


@dataclass(frozen=True)
class Located:
    """The location of one round's values with the variance that these alone give it, and its degrees of freedom."""

    value: float
    variance: float
    freedom: int


def located_mean(values: Array) -> Located:
    return Located(float(values.mean()), float(values.var(ddof=1)) / len(values), len(values) - 1)


def located_trimmed(values: Array) -> Located:
    """The variance is that of the winsorised values over (1 - 2 TRIM)² n (Tukey & McLaughlin, as for `trimmed`)."""
    count = len(values)
    cut = int(TRIM * count)
    ordered = np.sort(values)
    winsorised = np.clip(values, ordered[cut], ordered[count - cut - 1])
    kept = count - 2 * cut
    return Located(float(trimmed(values)), float(winsorised.var(ddof=1)) * (count - 1) / (kept * (kept - 1)), kept - 1)


def by_components(rounds: Sequence[Located]) -> tuple[float, float]:
    """Mean and half-width of a 95 % interval over two or more rounds of two or more slices each.

    The variance of the mean is s² / n from n rounds, and W from the slices alone; rounds that differ by less than
    their slices explain tell nothing more than W. As in the product, Student's quantile for n - 1 degrees of freedom
    counts for the share of the variance that slices do not explain, for the other that of the slices' own.
    bench/simulate.py measures the coverage.
    """
    count = len(rounds)
    between = float(np.var([one.value for one in rounds], ddof=1)) / count
    within = sum(one.variance for one in rounds) / count**2
    many = student(sum(one.freedom for one in rounds))
    share = max(0.0, 1 - within / between) if between > 0 else 0.0
    quantile = many + share * (student(count - 1) - many)
    return float(np.mean([one.value for one in rounds])), quantile * math.sqrt(max(between, within))


@dataclass(frozen=True)
class Precision:
    """Of the mean over rounds, all in logarithms. `within`: standard error from slices alone.

    `half_width`: of Student's 95 % interval over the rounds' own values, whatever they differ by; None for one round.
    """

    value: float
    within: float
    half_width: float | None


def precision(samples: Sequence[Sample], estimators: Sequence[Estimator], *, seed: int = 0) -> Precision:
    """One estimator per round (they may differ in a slope); passes are drawn anew inside the rounds."""
    random = np.random.default_rng(seed)
    values, variances = [], []
    for sample, estimate in zip(samples, estimators, strict=True):
        count = sample.above.shape[-1]
        drawn = estimate(sample.drawn(random.integers(0, count, (RESAMPLES, count))))
        values.append(float(estimate(sample)))
        variances.append(float(np.var(drawn, ddof=1)))
    within = math.sqrt(sum(variances)) / len(samples)
    value, half_width = by_rounds(values) if len(values) > 1 else (values[0], None)
    return Precision(value, within, half_width)


def at_load(half_width: float, had_s: float, wanted_s: float) -> float:
    """A half-width after `had_s` seconds of load, as it would be after `wanted_s`: it goes with 1 / √seconds."""
    return half_width * math.sqrt(had_s / wanted_s)


def half_width(found: Precision) -> float:
    """Of the 95 % interval that slices alone give."""
    return NORMAL * found.within


def wilson(count: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson, J. Am. Stat. Assoc. 22, 1927). Raises ValueError for `of` 0."""
    if of == 0:
        raise ValueError("a share of nothing")
    share, square = count / of, NORMAL**2 / of
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)
