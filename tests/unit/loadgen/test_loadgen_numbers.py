"""Histograms, schedules, counts per 100 ms, and what wrk and h2load write."""

from __future__ import annotations

import json
from array import array
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadgen import histogram
from loadgen.contract import Expect, Late, LoadSpec, Unanswered
from loadgen.engines import read_h2load, read_wrk
from loadgen.errors import EngineError
from loadgen.merge import unanswered
from loadgen.openloop import schedule
from loadgen.result import is_late, lateness, per_100ms
from loadgen.run import share

CASES = Path(__file__).parents[2] / "cases" / "loadgen"

times = st.lists(st.integers(0, 90 * 10**9), max_size=60)


@given(st.lists(times, min_size=1, max_size=4))
def test_merged_histograms_are_the_histogram_of_all(parts: list[list[int]]) -> None:
    together = histogram.describe(array("Q", [time for part in parts for time in part]))
    merged = histogram.merge(histogram.describe(array("Q", part)) for part in parts)
    assert replace(merged, mean=None) == replace(together, mean=None)
    assert merged.mean == pytest.approx(together.mean)


def test_percentiles_need_ten_samples_beyond_them() -> None:
    def given_for(count: int) -> list[str]:
        return list(histogram.describe(array("Q", range(1000, 1000 + count))).percentiles)

    assert given_for(19) == []
    assert given_for(20) == ["50"]
    assert given_for(999)[-1] == "95"
    assert given_for(1000)[-1] == "99"
    assert given_for(100_000)[-1] == "99.99"


def test_the_histogram_can_be_read_back() -> None:
    document = histogram.describe(array("Q", [1_500_000] * 30 + [2_000_000] * 10))
    again = HdrHistogram.decode(document.histogram)
    assert again.get_total_count() == document.count == 40
    assert document.percentiles["50"] == pytest.approx(1500, rel=0.001)
    assert (document.min, document.mean, document.max) == (1500, 1625, 2000)


def test_constant_arrivals_do_not_drift() -> None:
    spec = LoadSpec(url="http://h/", loop="open", rate=3000.0)
    made = list(schedule(spec, 100, 100 + 2 * 10**9))
    assert len(made) == 6000
    assert made[0] == 100
    assert made[3000] == 100 + 10**9


def test_poisson_arrivals_are_seeded_and_of_the_rate() -> None:
    def made(seed: int) -> list[int]:
        spec = LoadSpec(url="http://h/", loop="open", rate=1000.0, arrivals="poisson", seed=seed)
        return list(schedule(spec, 0, 20 * 10**9))

    assert made(1) == made(1) != made(2)
    gaps = [later - earlier for earlier, later in pairwise(made(1))]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(1e6, rel=0.03)
    assert deviation == pytest.approx(mean, rel=0.05)  # exponential: both are the same


@given(st.integers(1, 64), st.integers(1, 8))
def test_processes_share_everything_out(connections: int, processes: int) -> None:
    if processes > connections:
        return
    spec = LoadSpec(url="http://h/", connections=connections, processes=processes, cpus=(3, 5), loop="open", rate=90.0)
    parts = [share(spec, worker) for worker in range(processes)]
    assert sum(part.connections for part in parts) == connections
    assert sum(part.rate or 0 for part in parts) == pytest.approx(90)
    assert len({part.seed for part in parts}) == processes
    assert [part.cpus for part in islice(parts, 2)] == [(3,), (5,)][:processes]


def test_per_100ms_adds_up() -> None:
    marks = list(range(2, 52, 2))  # 25 marks: a quarter of a second
    assert per_100ms(marks, 53) == (20, 20, 13)
    assert per_100ms([], 0) == (0,)


def test_late_clients() -> None:
    late = lateness(11, 5_000_000)
    assert late == Late(bound_us=1000, max_us=5000, requests=11)
    assert is_late(late, 1000)
    assert not is_late(lateness(10, 5_000_000), 1000)
    assert not is_late(None, 1000)


def test_wrk_is_read_from_its_hook() -> None:
    found = read_wrk((CASES / "wrk.json").read_text(encoding="ascii"))
    written = json.loads((CASES / "wrk.json").read_text(encoding="ascii"))
    assert found.requests == written["requests"] - 7
    assert found.errors == {"refused": 0, "reset": 3, "timeout": 1, "status": 7}
    assert found.latencies[24] == 31
    assert found.elapsed_s == pytest.approx(1.006, abs=0.001)


def test_h2load_is_read_from_its_log() -> None:
    spec = LoadSpec(url="http://h/", engine="h2load", duration_s=1.0, expect=Expect(200))
    found = read_h2load((CASES / "h2load.tsv").read_text(encoding="ascii"), spec)
    assert found.requests == 4
    assert found.errors == {"reset": 1, "status": 1}
    assert sorted(found.latencies) == [524, 530, 544, 900_000]
    assert found.per_100ms == [3, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    with pytest.raises(EngineError):
        read_h2load("", spec)


@given(st.lists(st.tuples(st.integers(0, 99), st.none() | st.floats(0, 1e9)), min_size=1, max_size=5))
def test_merged_counts_of_unanswered_connections(parts: list[tuple[int, float | None]]) -> None:
    merged = unanswered([Unanswered(connections=number, oldest_us=age) for number, age in parts])
    assert merged.connections == sum(number for number, _ in parts)
    assert merged.oldest_us == max((age for _, age in parts if age is not None), default=None)
