"""What the probes of start, end and deploy make of what the agents saw; and the whole way on the memory engine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.contract import Arrival, Clocks, End, Fate, Fates, Signalled, Watched
from orchestrator.engines.ends import Exit
from orchestrator.engines.memory import Behaviour
from orchestrator.errors import LoadFailed, ServerFailed
from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.probes.deploy.measure import BIN_NS, disturbance
from orchestrator.probes.deploy.record import Disturbed
from orchestrator.probes.observers import MS, NS
from orchestrator.probes.shutdown.measure import places, repetition, summary
from orchestrator.probes.shutdown.record import Ending
from orchestrator.probes.startup.measure import Mark, mark_of, spread
from tests.unit.probes.conftest import Runner

SENT = Signalled(before_ns=10 * NS - 20_000, after_ns=10 * NS + 20_000, processes=1)
CLOCK = Clocks(monotonic_ns=9 * NS, wall_ns=1_000_009 * NS)


def fate(end: End, at_ms: float) -> Fate:
    return Fate(end, int(10 * NS + at_ms * MS))


def watched(slow: End, new: End = "refused", queued: End = "answered", at_ms: float = 1251) -> Watched:
    fates = Fates(
        slow=fate(slow, 1250),
        queued=fate(queued, at_ms),
        idle=fate("closed", 3),
        kept=fate("closed", 3),
        new=fate(new, 100),
    )
    return Watched(received_ns=10 * NS - 249 * MS, connections=fates)


def test_moments_count_from_the_signal_also_those_of_the_wall_clock() -> None:
    ended = Exit(0, CLOCK.wall_ns + NS + 1_300 * MS)
    found = Ending.model_validate(repetition(SENT, watched("answered"), ended, CLOCK))
    assert (found.slow.at_ms, found.received_ms, found.exit_ms) == (1250, -249, 1300)
    assert found.signal_error_us == 20


@pytest.mark.parametrize(
    ("slow", "new", "code", "outcome"),
    [
        ("answered", "refused", 0, "answered"),
        ("cut", "refused", 0, "cut"),
        ("answered", "answered", None, "ignored"),
        ("answered", "refused", None, "answered"),  # it stopped serving, but never ended
        ("reset", "answered", 1, "reset"),
        ("status", "answered", None, "status"),  # it serves on, but lost the request
    ],
)
def test_a_server_that_serves_on_has_ignored_the_signal(slow: End, new: End, code: int | None, outcome: str) -> None:
    ended = None if code is None else Exit(code, CLOCK.wall_ns)
    found = repetition(SENT, watched(slow, new), ended, CLOCK)
    assert (found["outcome"], found["exit_code"]) == (outcome, code)


@given(st.lists(st.sampled_from(["answered", "cut", "reset"]), min_size=1))
def test_repetitions_that_differ_are_mixed_and_counted(ends: list[End]) -> None:
    found = summary([repetition(SENT, watched(end), Exit(0, CLOCK.wall_ns), CLOCK) for end in ends])
    assert found["outcome"] == (ends[0] if len(set(ends)) == 1 else "mixed")
    assert sum(found["outcomes"].values()) == len(ends)
    assert found["exit_codes"] == {"0": len(ends)}


@pytest.mark.parametrize(
    ("queued", "at_ms", "told"),
    [
        ("answered", 1251, "answered"),
        ("answered", -98, "at_once"),
        ("reset", 1300, "reset"),
        ("refused", -100, "refused"),
    ],
)
def test_a_request_that_was_answered_before_the_signal_never_waited(queued: End, at_ms: float, told: str) -> None:
    found = repetition(SENT, watched("answered", queued=queued, at_ms=at_ms), Exit(0, CLOCK.wall_ns), CLOCK)
    assert summary([found, found])["queued"] == {told: 2}


@pytest.mark.parametrize(("workers", "threads", "busy"), [(1, None, 1), (2, None, 2), (1, 4, 4), (2, 4, 8)])
def test_every_worker_and_thread_is_a_place(workers: int, threads: int | None, busy: int) -> None:
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    (cell, *_) = expand(matrix, "shutdown", only=("gunicorn/gthread*",)).cells
    assert places(replace(cell, workers=workers, threads=threads)) == busy


def requests(before_ms: float, after_ms: float, until_bin: int, lost: range = range(0)) -> list[Arrival]:
    """Ten a bin, twenty bins before an event at 20 bins and forty after; slow until a bin after it; some lost."""
    made = []
    for at in range(600):
        due, bin_after = at * BIN_NS // 10, at // 10 - 20
        latency = after_ms if 0 <= bin_after < until_bin else before_ms
        made.append(Arrival(due, due + int(latency * MS), "reset" if bin_after in lost else ""))
    return made


def disturbed(made: list[Arrival]) -> Disturbed:
    return Disturbed.model_validate(disturbance(made, 20 * BIN_NS))


def test_an_event_that_nobody_notices() -> None:
    found = disturbed(requests(12, 12, 0))
    assert (found.lost, found.added_ms, found.normal_after_s) == ({}, 0, 0)


def test_latency_is_added_until_it_is_as_before() -> None:
    found = disturbed(requests(12, 200, 7))
    assert (found.lost, found.added_ms, found.normal_after_s) == ({}, 188, 0.7)


def test_requests_are_lost_by_kind_and_the_last_loss_counts() -> None:
    found = disturbed(requests(12, 12, 0, lost=range(3, 9)))
    assert (found.lost, found.normal_after_s) == ({"reset": 60}, 0.9)


def test_a_server_that_does_not_come_back() -> None:
    assert disturbed(requests(12, 200, 40)).normal_after_s is None


def test_without_an_answer_before_there_is_nothing_to_compare_with() -> None:
    with pytest.raises(LoadFailed):
        disturbance([Arrival(0, 1, "refused")], BIN_NS)


def test_a_start_is_marked_in_the_log() -> None:
    assert mark_of('\nsomething\n{"mark_ns": 5, "cpu_ns": 2}\nready') == Mark(mark_ns=5, cpu_ns=2)
    with pytest.raises(ServerFailed):
        mark_of("nothing of the kind")


def test_a_spread_has_its_middle() -> None:
    assert spread([3, 1, 2]) == {"low": 1, "median": 2, "high": 3}
    assert spread([3, None]) is None


@pytest.mark.parametrize("suite", ["startup", "shutdown", "shutdown-cases", "deploy"])
def test_each_suite_goes_through(run_smoke: Runner, suite: str) -> None:
    _, found = run_smoke(suite=suite, only=("uvicorn/standard*", "granian/asgi*"))
    assert {record.outcome for record in found.values()} == {"measured"}
    section = suite.partition("-")[0]
    assert all(getattr(record, section) is not None for record in found.values())


def test_an_ending_is_told_as_it_was(run_smoke: Runner) -> None:
    ways = {"uvicorn/standard": Behaviour(end="cut"), "waitress/threads": Behaviour(end="ignored"),
            "daphne/twisted": Behaviour(start_error="no such command")}  # fmt: skip
    _, found = run_smoke(ways, suite="shutdown", only=("uvicorn/standard*c1", "waitress*", "daphne*"))
    assert [found[name].outcome for name in ("uvicorn", "waitress", "daphne")] == ["measured"] * 2 + ["not_started"]
    sections = [found[name].shutdown for name in ("uvicorn", "waitress")]
    assert [section.cases[0].outcome for section in sections if section] == ["cut", "ignored"]
