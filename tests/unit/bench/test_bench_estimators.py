"""Estimators and intervals of the benches against scipy, and against distributions whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats  # type: ignore[import-untyped]

from bench import estimators
from bench.estimators import Array, Sample
from bench.simulate import INTERVALS, Case, coverage
from orchestrator.judge import stats

MANY = 4000


def drawn(size: tuple[int, ...], seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(3, 1, size)


# --- locations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 4, 5, 9, 30])
def test_trimmed_mean_is_that_of_scipy(count: int) -> None:
    values = drawn((7, count))
    assert estimators.trimmed(values) == pytest.approx(scipy_stats.trim_mean(values, 0.2, axis=-1))


@pytest.mark.parametrize("count", [1, 2, 7, 12])
def test_hodges_lehmann_is_the_median_of_all_pairs(count: int) -> None:
    values = drawn((count,))
    means = [(values[i] + values[j]) / 2 for i in range(count) for j in range(i, count)]
    assert float(estimators.hodges_lehmann(values)) == pytest.approx(float(np.median(means)))


@pytest.mark.parametrize(
    ("location", "loss"),
    # Asymptotic variances over the mean's for normal noise; 25 values are close to them.
    [(estimators.median, math.pi / 2), (estimators.hodges_lehmann, math.pi / 3), (estimators.trimmed, 1.15)],
)
def test_variance_for_normal_noise(location: estimators.Location, loss: float) -> None:
    values = drawn((MANY, 25))
    assert float(location(values).var() / values.mean(axis=-1).var()) == pytest.approx(loss, rel=0.08)


def test_a_median_is_poor_where_noise_has_two_peaks() -> None:
    random = np.random.default_rng(2)
    values = random.normal(0, 0.2, (MANY, 30)) + 2.0 * (random.random((MANY, 30)) < 0.5)
    assert float(np.median(values, axis=-1).var() / values.mean(axis=-1).var()) > 5


@pytest.mark.parametrize("name", ["mean", "median", "trimmed", "hodges_lehmann", "quiet"])
def test_a_shift_shifts_the_location(name: str) -> None:
    location, values = getattr(estimators, name), drawn((3, 11))
    assert location(values + 0.5) == pytest.approx(location(values) + 0.5)


# --- intervals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "of"), [(0, 40), (2, 40), (20, 40), (38, 40), (40, 40), (1, 1)])
def test_wilson_is_that_of_scipy(count: int, of: int) -> None:
    found = scipy_stats.binomtest(count, of).proportion_ci(method="wilson")
    assert estimators.wilson(count, of) == pytest.approx((found.low, found.high), abs=1e-4)


def test_interval_over_rounds_is_students() -> None:
    values = list(drawn((6,)))
    value, half = estimators.by_rounds(values)
    low, high = scipy_stats.t.interval(0.95, 5, loc=np.mean(values), scale=scipy_stats.sem(values))
    assert (value - half, value + half) == pytest.approx((low, high), rel=1e-3)


def test_variance_of_a_trimmed_mean_is_that_of_yuens_test_in_scipy() -> None:
    one, other = drawn((12,)), drawn((17,), seed=2) + 0.4
    first, second = estimators.located_trimmed(one), estimators.located_trimmed(other)
    expected = scipy_stats.ttest_ind(one, other, equal_var=False, trim=0.2).statistic
    assert (first.value - second.value) / math.sqrt(first.variance + second.variance) == pytest.approx(expected)


def test_located_mean_has_the_standard_error_of_scipy() -> None:
    values = drawn((9,))
    assert math.sqrt(estimators.located_mean(values).variance) == pytest.approx(scipy_stats.sem(values))


# Nominal 0.95. bench/noise_bench.py --simulate has more of them, with 400 simulations each.
@pytest.mark.parametrize("noise", ["normal", "two peaks", "one tail"])
@pytest.mark.parametrize(("rounds", "slices", "own"), [(3, 3, 0.1), (5, 6, 0.0), (5, 6, 0.05), (10, 3, 0.03)])
def test_coverage_of_the_interval_from_components(rounds: int, slices: int, own: float, noise: str) -> None:
    held, _ = coverage(Case(rounds, slices, own, 0.1, noise), INTERVALS["mean, components"], times=400)
    assert held >= 0.90


def test_components_are_narrower_than_the_product_where_launches_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "RESAMPLES", 400)
    case = Case(5, 6, 0.0, 0.1, "normal")
    found, product = (coverage(case, INTERVALS[name], times=60) for name in ("mean, components", "product"))
    assert found[1] < 0.8 * product[1]


def test_standard_error_from_slices_is_the_known_one() -> None:
    random = np.random.default_rng(3)
    samples = [Sample(random.normal(0, 0.1, 200), random.normal(0, 0.1, 200)) for _ in range(4)]
    found = estimators.precision(samples, [estimators.apart(estimators.mean)] * 4)
    assert found.within == pytest.approx(0.1 * math.sqrt(2 / 800), rel=0.1)
    assert estimators.half_width(found) == pytest.approx(1.96 * found.within)


def test_four_times_the_load_halves_the_interval() -> None:
    assert estimators.at_load(0.04, 15, 60) == pytest.approx(0.02)


# --- control variates -------------------------------------------------------------------------------------------------


def with_control(seed: int, *, between: float = 0.0, passes: int = 40, rounds: int = 4) -> list[Sample]:
    """Cost = level + covariate + a little; the covariate's expectation differs by `between`. Truth: 0.3."""
    random = np.random.default_rng(seed)

    def one() -> Sample:
        first, second = (random.normal(shift, 0.1, passes) for shift in (between, 0.0))
        above = 0.3 + (first - between) + random.normal(0, 0.02, passes)
        below = second + random.normal(0, 0.02, passes)
        return Sample(above, below, {"c": (first, second)})

    return [one() for _ in range(rounds)]


def estimated(samples: list[Sample]) -> float:
    slopes = estimators.slopes(samples, "c")
    made = [float(estimators.controlled("c", slope)(one)) for one, slope in zip(samples, slopes, strict=True)]
    return float(np.mean(made))


def test_slope_comes_from_the_other_rounds_alone() -> None:
    samples = with_control(1)
    strange = Sample(samples[0].above, samples[0].below, {"c": (drawn((40,)), drawn((40,), 2))})
    assert estimators.slopes([strange, *samples[1:]], "c")[0] == estimators.slopes(samples, "c")[0]
    assert estimators.slopes(samples, "c") == pytest.approx([1.0] * 4, abs=0.06)
    assert estimators.correlation(samples, "c") == pytest.approx(1 / math.sqrt(1 + 0.2**2), abs=0.01)


def test_a_sound_control_keeps_the_truth_and_takes_the_shared_noise_away() -> None:
    found = np.array([estimated(with_control(seed)) for seed in range(200)])
    plain = np.array([np.mean([one.above.mean() - one.below.mean() for one in with_control(s)]) for s in range(200)])
    assert found.mean() == pytest.approx(0.3, abs=0.002)
    assert found.std() < plain.std() / 3  # 1 / sqrt(1 - r²) = 5.1, less what the slope's own error costs


def test_a_control_whose_expectation_differs_between_servers_is_wrong() -> None:
    """So the client's CPU per request may not be used: it depends on the server."""
    assert estimated(with_control(1, between=0.2)) == pytest.approx(0.3 - 0.2, abs=0.02)


def test_a_covariate_that_never_changes_changes_nothing() -> None:
    flat = {"c": (np.zeros(5), np.zeros(5))}
    samples = [Sample(drawn((5,), seed), drawn((5,), seed + 9), flat) for seed in range(2)]
    assert estimators.slopes(samples, "c") == [0.0, 0.0]
    assert estimators.correlation(samples, "c") == 0.0
