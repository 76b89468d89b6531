"""The figures of a cell from its slices: what adds up, what is shared out, and what is left unknown."""

from __future__ import annotations

from typing import Any

import pytest

from loadgen.contract import LoadResult
from orchestrator.evidence.model import Summary
from orchestrator.judge.figures import CellSlices, Pair, alone, summary
from orchestrator.judge.summary import cpu_us_of, per_cpu_s_of, ratio, rps_of
from orchestrator.probes.fingerprint import Fingerprint
from orchestrator.probes.results import Check, Round, Slice
from tests.unit.loads import histogram_of, load_of

NOTHING_OF_THE_SERVER = {
    "cpu_us_per_request", "cpu_user_us_per_request", "cpu_system_us_per_request", "voluntary_switches_per_request",
    "involuntary_switches_per_request", "memory_bytes",
    "memory_pss_bytes", "memory_peak_bytes", "memory_per_worker_bytes", "processes",
}  # fmt: skip
OF_AN_OPEN_LOOP = {"rate_asked", "rate_share"}
OF_SEVERAL = {"between", "within", "ratio", "cpu_ratio", "ceiling_share"}
"""Rounds, slices, or cells."""
CHECK = Check(0.1, Fingerprint(), (), True, False)


def load(server: dict[str, Any] | None, requests: int = 1000, **changes: Any) -> LoadResult:
    latency = {"histogram": histogram_of([8000] * requests), "mean": 8000.0}
    of_server = None if server is None else {"cpu_s": 0.9, **server}
    return load_of(**{"requests": requests, "rps": float(requests), "latency": latency, "server": of_server, **changes})


def rounds(*loads: LoadResult, idle: tuple[int | None, int | None] = (20, 10)) -> list[Round]:
    """One slice each."""
    check = Check(0.1, Fingerprint(), (), True, False, *idle)
    return [Round(at, check, (Slice(0, "", document, 0.0),)) for at, document in enumerate(loads)]


def figures(measured: list[Round]) -> Summary | None:
    """Of a cell that is compared with none."""
    cell = CellSlices(measured)
    found = alone(cell)
    return summary(found, Pair(cell, None, False, "")) if found else None


def of(*loads: LoadResult, idle: tuple[int | None, int | None] = (20, 10)) -> Summary:
    found = figures(rounds(*loads, idle=idle))
    assert found is not None
    return found


def test_cpu_is_exact_and_parted_by_the_ticks_of_all_slices() -> None:
    found = of(load({}), load({"user_s": 0.3, "system_s": 0.5}))
    assert found.cpu_us_per_request is not None
    assert found.cpu_us_per_request.value == pytest.approx(900)
    assert (found.cpu_user_us_per_request, found.cpu_system_us_per_request) == pytest.approx(
        (900 * 0.9 / 1.6, 900 * 0.7 / 1.6)
    )


def test_cpu_under_a_tick_has_no_parts() -> None:
    found = of(load({"user_s": 0.0, "system_s": 0.0}))
    assert found.cpu_us_per_request is not None
    assert (found.cpu_user_us_per_request, found.cpu_system_us_per_request) == (None, None)


def test_switches_are_for_each_right_answer() -> None:
    found = of(load({}), load({"voluntary_switches": 100}, requests=3000))
    assert (found.voluntary_switches_per_request, found.involuntary_switches_per_request) == pytest.approx(
        (2100 / 4000, 200 / 4000)
    )


def test_a_slice_whose_threads_took_their_switches_away_does_not_count() -> None:
    assert of(load({}), load({"voluntary_switches": -5})).voluntary_switches_per_request == pytest.approx(2)
    assert of(load({"voluntary_switches": -5})).voluntary_switches_per_request is None


def test_memory_is_the_largest_seen() -> None:
    found = of(load({}), load({"rss_bytes": 60, "pss_bytes": 35, "peak_rss_bytes": 70}))
    assert (found.memory_bytes, found.memory_pss_bytes, found.memory_peak_bytes) == (60, 35, 70)
    assert (found.memory_idle_bytes, found.memory_idle_pss_bytes) == (20, 10)


def test_memory_that_may_not_be_read_is_unknown() -> None:
    found = of(load({"pss_bytes": None}), idle=(20, None))
    assert (found.memory_bytes, found.memory_pss_bytes, found.memory_idle_pss_bytes) == (40, None, None)


def test_a_server_that_was_not_seen_has_its_throughput_only() -> None:
    found = of(load(None), idle=(None, None))
    unknown = {name for name, value in vars(found).items() if value is None}
    idle = {"memory_idle_bytes", "memory_idle_pss_bytes"}
    assert unknown == NOTHING_OF_THE_SERVER | idle | OF_AN_OPEN_LOOP | OF_SEVERAL


def test_of_an_open_loop_those_in_time_are_a_share_of_all_that_were_due() -> None:
    """The first slice was asked for 1100 requests by chance, and had 990 answers at its end; the second 900 and all."""
    documents: Any = ({"requests": 1080, "errors": {"timeout": 20}, "rps": 990.0}, {"requests": 900, "rps": 900.0})
    slices = tuple(Slice(0, "", load({}, **document), 0.0, 1000.0) for document in documents)
    found = figures([Round(1, CHECK, slices)])
    assert found is not None
    assert found.rate_asked == pytest.approx(1000)
    assert found.rate_share == pytest.approx(1890 / 2000)


def test_a_ratio_of_cpu_is_above_one_for_the_cheaper() -> None:
    """Whatever its throughput: at a client's limit both have the same."""
    cheap, dear = rounds(*[load({"cpu_s": 0.3})] * 3), rounds(*[load({"cpu_s": 0.9})] * 3)
    found, throughput = ratio(cheap, dear, per_cpu_s_of), ratio(cheap, dear, rps_of)
    assert found is not None
    assert throughput is not None
    assert (found.value, throughput.value) == pytest.approx((3.0, 1.0))
    assert found.low is not None
    assert found.low > 1


def test_a_ratio_compares_slices_of_one_pass_where_both_have_a_figure() -> None:
    """The machine is three times as fast in the second pass, and one side has no figure in the first."""
    own, reference = ([load(None, 1000), load({}, 6000)], [load({}, 1000), load({}, 3000)])
    whole = [[Round(1, None, tuple(Slice(0, "", one, 0.0) for one in some))] for some in (own, reference)]
    found, of_cpu = (ratio(whole[0], whole[1], figure) for figure in (rps_of, per_cpu_s_of))
    assert found is not None
    assert of_cpu is not None
    assert (found.value, of_cpu.value) == pytest.approx((2**0.5, 2.0))
    assert (shorter := ratio(whole[0], [Round(1, None, whole[1][0].slices[:1])], rps_of)) is not None
    assert shorter.value == pytest.approx(1.0)


def test_latencies_have_intervals_in_an_open_loop_alone() -> None:
    one = load({})
    closed, open_ = (
        figures([Round(at, CHECK, (Slice(0, "", one, 0.0, rate),)) for at in (1, 2, 3)]) for rate in (None, 1000.0)
    )
    assert closed is not None
    assert open_ is not None
    assert closed.latency_intervals_us == {}
    assert open_.latency_intervals_us.keys() == {"p50", "p75", "p90", "p95", "p99"}
    assert open_.latency_intervals_us["p50"].value == open_.latency_us["p50"]


def test_a_ratio_needs_a_round_that_holds_both() -> None:
    assert ratio(rounds(load({})), rounds(load(None)), per_cpu_s_of) is None
    assert ratio(rounds(load({})), [], per_cpu_s_of) is None


def test_no_cpu_gives_no_answers_a_second_of_it() -> None:
    idle = load({"cpu_s": 0.0})
    assert (cpu_us_of(idle), per_cpu_s_of(idle)) == (0.0, None)
