"""Percentiles of a cell against those of an HDR histogram that all slices are added to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.contract import DIGITS, HIGHEST_US, LOWEST_US, LoadResult
from orchestrator.judge import latency
from orchestrator.probes.results import Round, Slice
from tests.unit.loads import histogram_of, load_of

TIMES = st.lists(st.integers(1, HIGHEST_US), min_size=0, max_size=60)


def rounds_of(times: Sequence[Sequence[Sequence[int]]]) -> list[Round]:
    """By round and slice, latencies in µs."""
    return [
        Round(at, None, tuple(Slice(0, "", load(some), 0.0) for some in slices), None)
        for at, slices in enumerate(times)
    ]


def load(times: Sequence[int]) -> LoadResult:
    return load_of(requests=len(times), latency={"histogram": histogram_of(times)})


def histogram(times: Sequence[int]) -> HdrHistogram:
    found = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    for time in times:
        found.record_value(time)
    return found


@given(st.lists(st.lists(TIMES, min_size=1, max_size=3), min_size=1, max_size=3))
@settings(deadline=None, max_examples=40)
def test_percentiles_are_those_of_all_samples_in_one_histogram(times: list[list[list[int]]]) -> None:
    flat = [time for slices in times for some in slices for time in some]
    merged = histogram(flat)
    expected = {
        f"p{percent:g}": merged.get_value_at_percentile(percent)
        for percent in latency.PERCENTILES
        if len(flat) * (1 - percent / 100) >= latency.BEYOND
    }
    assert latency.percentiles(latency.histograms(rounds_of(times))) == expected


def test_an_interval_wants_samples_in_each_round() -> None:
    much, little = [[list(range(100, 3000))]] * 2, [[list(range(100, 140))]]
    assert latency.intervals(latency.histograms(rounds_of(much))).keys() == {"p50", "p75", "p90", "p95", "p99"}
    assert latency.intervals(latency.histograms(rounds_of(much + little))).keys() == {"p50", "p75"}
    assert latency.intervals(latency.histograms(rounds_of([[[]]]))) == {}
    assert latency.percentiles(latency.histograms(rounds_of([[[]]]))) == {}


def test_one_round_gives_percentiles_without_ends_and_two_that_differ_wide_ones() -> None:
    short, long = list(range(100, 200)), list(range(200, 400))
    alone = latency.intervals(latency.histograms(rounds_of([[short]])))["p50"]
    assert (alone.low, alone.high) == (None, None)
    both = latency.intervals(latency.histograms(rounds_of([[short, short], [long, long]])))["p50"]
    assert both.low is not None
    assert both.high is not None
    assert both.low < 150
    assert both.high > 300


@pytest.mark.parametrize("empty", [[[1000], []], [[], [1000]]])
def test_a_slice_without_a_sample_counts_for_nothing(empty: list[list[int]]) -> None:
    ten = [time for some in empty for time in some] * 20
    found = latency.histograms(rounds_of([[ten, []], [[], ten]]))
    assert [len(slices) for slices in found.rounds] == [1, 1]
