"""Latencies of a cell from the HDR histograms of its slices: percentiles, and how well each is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hdrh.histogram import HdrHistogram

from loadgen.contract import DIGITS, HIGHEST_US, LOWEST_US, LoadResult
from orchestrator.judge import stats
from orchestrator.judge.stats import Array, Interval
from orchestrator.probes.results import Round

PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
BEYOND = 10
"""A percentile is given where at least so many samples lie beyond it."""

_SHAPE = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)


@dataclass(frozen=True)
class Histograms:
    """How often each of `values` (µs, rising) was seen: a matrix for each round, slices × values; no slice is empty."""

    values: Array
    rounds: tuple[Array, ...]


def histograms(rounds: Sequence[Round]) -> Histograms:
    """Rounds and slices without any sample are left out."""
    seen = [[_counts(slice_.load) for slice_ in round_.slices] for round_ in rounds]
    kept = [np.stack(some) for slices in seen if (some := [counts for counts in slices if counts.any()])]
    if not kept:
        return Histograms(np.empty(0), ())
    used = np.flatnonzero(np.concatenate(kept).any(axis=0))
    values = [_SHAPE.get_highest_equivalent_value(_SHAPE.get_value_from_index(int(at))) for at in used]
    return Histograms(np.maximum(np.array(values, float), LOWEST_US), tuple(slices[:, used] for slices in kept))


def percentiles(seen: Histograms) -> dict[str, float]:
    """Of all slices together, in µs, by name (`p99.9`): those that have BEYOND samples beyond them."""
    together = (np.concatenate(seen.rounds),) if seen.rounds else ()
    return {name: one.value for name, one in intervals(Histograms(seen.values, together)).items()}


def intervals(seen: Histograms) -> dict[str, Interval]:
    """The same with intervals: those that each round has the samples for."""
    if not seen.rounds:
        return {}
    wanted = [percent for percent in PERCENTILES if all(_supported(slices, percent) for slices in seen.rounds)]
    found = stats.percentiles(seen.rounds, seen.values, wanted)
    return {f"p{percent:g}": one for percent, one in zip(wanted, found, strict=True)}


def mean(loads: Sequence[LoadResult]) -> float | None:
    """In µs. Exact, from each slice's own mean; the histogram's would be rounded to three figures."""
    found = ((load.requests, load.latency.mean) for load in loads)
    kept = [(count, one) for count, one in found if count and one is not None]
    return sum(count * one for count, one in kept) / sum(count for count, _ in kept) if kept else None


def _supported(slices: Array, percent: float) -> bool:
    return float(slices.sum()) * (1 - percent / 100) >= BEYOND


def _counts(load: LoadResult) -> Array:
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    histogram.decode_and_add(load.latency.histogram)
    return np.ctypeslib.as_array(histogram.counts).astype(float)
