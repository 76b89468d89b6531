"""Coverage and half-width of intervals on simulated slices, the product's beside others (`--simulate` of noise_bench).

A slice's logarithm is that of the server + the machine's drift in the round + the launch's luck + noise. Truth: 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from bench.estimators import Array, by_components, by_rounds, located_mean, located_trimmed
from orchestrator.judge import stats

DRIFT = 0.05
TIMES = 400


@dataclass(frozen=True)
class Case:
    """Standard deviations of logarithms: `own` between launches, `within` between slices; `noise` is its kind."""

    rounds: int
    slices: int
    own: float
    within: float
    noise: str


SHAPES = ((3, 3, 0.0, 0.1), (3, 3, 0.1, 0.1), (5, 2, 0.0, 0.1), (5, 6, 0.0, 0.1), (5, 6, 0.02, 0.1), (5, 6, 0.05, 0.1),
          (5, 3, 0.15, 0.05), (10, 3, 0.0, 0.1), (10, 3, 0.03, 0.1))  # fmt: skip
CASES = tuple(Case(*shape, noise) for noise in ("normal", "two peaks", "one tail") for shape in SHAPES)


def noise(random: np.random.Generator, kind: str, size: int) -> Array:
    """Of mean nought and standard deviation 1. Two peaks: 40 % of the slices are slow ones; one tail: exponential."""
    if kind == "two peaks":
        raw = 2.0 * (random.random(size) < 0.4) + random.normal(0, 0.35, size)
        return np.asarray((raw - 0.8) / math.sqrt(4 * 0.24 + 0.35**2))
    return random.normal(0, 1, size) if kind == "normal" else random.exponential(1, size) - 1


def simulated(random: np.random.Generator, case: Case) -> tuple[list[Array], list[Array]]:
    """Logarithms of the slices of two servers, by round; the machine's drift is the same for both."""
    drift = random.normal(0, DRIFT, case.rounds)
    above, below = (
        [
            centre + shift + random.normal(0, case.own) + case.within * noise(random, case.noise, case.slices)
            for shift in drift
        ]
        for centre in (math.log(2), 0.0)
    )
    return above, below


Intervals = Callable[[Sequence[Array], Sequence[Array]], tuple[float, float]]


def product(above: Sequence[Array], below: Sequence[Array]) -> tuple[float, float]:
    found = stats.ratio([list(np.exp(a)) for a in above], [list(np.exp(b)) for b in below])
    assert found.low is not None
    assert found.high is not None
    return math.log(found.low * found.high) / 2, math.log(found.high / found.low) / 2


INTERVALS: dict[str, Intervals] = {
    "product": product,
    "mean, t": lambda a, b: by_rounds([float((x - y).mean()) for x, y in zip(a, b, strict=True)]),
    "mean, components": lambda a, b: by_components([located_mean(x - y) for x, y in zip(a, b, strict=True)]),
    "trimmed, components": lambda a, b: by_components([located_trimmed(x - y) for x, y in zip(a, b, strict=True)]),
}


def coverage(case: Case, intervals: Intervals, times: int = TIMES) -> tuple[float, float]:
    """How often an interval holds the truth, and its median half-width."""
    random = np.random.default_rng(20261207)
    found = [intervals(*simulated(random, case)) for _ in range(times)]
    return sum(abs(value - math.log(2)) <= half for value, half in found) / times, median(half for _, half in found)


def lines(times: int = TIMES) -> Iterator[str]:
    """The table: coverage (nominal 95 %) and half-width of each interval in each case."""
    yield f"{times} simulated pairs a case; coverage of the 95 % interval, and its median half-width"
    yield f"{'noise':10}{'rounds':>7}{'slices':>7}{'between':>8}{'within':>7}" + "".join(f"{n:>22}" for n in INTERVALS)
    for case in CASES:
        found = [coverage(case, intervals, times) for intervals in INTERVALS.values()]
        figures = "".join(f"{f'{share:.1%} {half:.1%}':>22}" for share, half in found)
        yield f"{case.noise:10}{case.rounds:>7}{case.slices:>7}{case.own:>8.2f}{case.within:>7.2f}{figures}"
