"""Rounds go on until every ratio is known: whole comparisons at a time, and with a reason for the end on record."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadgen.contract import LoadResult
from orchestrator.engines.memory import Behaviour, MemoryEngine
from orchestrator.engines.protocol import Launch, Seat
from orchestrator.errors import SpecError
from orchestrator.evidence.model import Record, RunFile
from orchestrator.evidence.store import read_run
from orchestrator.figures import Estimate
from orchestrator.images.plan import ROOT
from orchestrator.judge import stats
from orchestrator.judge.precision import groups, half_width, percent
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import parse_matrix
from orchestrator.matrix.models import Matrix
from orchestrator.pipeline import Order, run
from orchestrator.probes.events import Event, ServersUp, SliceDone, Told
from tests.unit.loads import changed

Runner = Callable[..., tuple[RunFile, dict[str, Record], list[Event]]]
SUITE = """
suites:
  s:
    baseline: threaded/plain
    axes: {server: [threaded, single], app: flask, open: [0, 50], connections: [8, 32]}
    schedule: {rounds: 2, slices: 2, slice_s: 0.5, precision: 0.05, max_rounds: 6}
"""
MATRIX: Matrix = parse_matrix(
    (ROOT / "tests/cases/four-servers.matrix.yaml").read_text(encoding="utf-8") + SUITE
).matrix
QUIET, LOUD = Behaviour(noise=0.001), Behaviour(noise=0.3)


def loud_at_32(result: LoadResult) -> LoadResult:
    """What it answers with 32 connections is any number, and with 8 always the same."""
    if result.spec and result.spec.connections == 8:
        return changed(result, rps=1000.0, requests=500)
    return result


MIXED = Behaviour(noise=0.3, load=loud_at_32)


def order(folder: Path, *, resume: bool = False, **schedule: Any) -> Order:
    selection = expand(MATRIX, "s")
    changed = replace(selection, schedule=selection.schedule.model_copy(update=schedule))
    return Order(MATRIX, changed, folder, 1, resume)


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "RESAMPLES", 200)


@pytest.fixture
def measured(tmp_path: Path) -> Runner:
    """Runs the suite; records by id without what all have in common, and what was told."""

    def go(behaviours: Mapping[str, Behaviour], **changes: Any) -> tuple[RunFile, dict[str, Record], list[Event]]:
        told: list[Event] = []
        run_file, records = run(order(tmp_path, **changes), MemoryEngine(behaviours), told.append)
        return run_file, {record.id.replace("·slim·wheel·py3.13·flask·w1", ""): record for record in records}, told

    return go


def counts(records: Mapping[str, Record]) -> dict[str, int]:
    return {own: len(record.rounds) for own, record in records.items() if record.cell.server == "single"}


def test_quiet_servers_need_no_more_rounds_than_the_suite_has(measured: Runner) -> None:
    run_file, records, _ = measured({"threaded/plain": QUIET, "single/plain": QUIET})
    assert {len(record.rounds) for record in records.values()} == {2}
    assert run_file.stopped == "every ratio is known to 5 %: after 2 rounds"


def test_without_a_precision_nothing_is_said(measured: Runner) -> None:
    run_file, records, _ = measured({"single/plain": LOUD}, precision=0.0)
    assert {len(record.rounds) for record in records.values()} == {2}
    assert run_file.stopped == ""


def test_rounds_that_lie_far_apart_are_added_to_up_to_the_bound(measured: Runner) -> None:
    run_file, records, told = measured({"single/plain": Behaviour(noise=0.9)}, precision=0.0, rounds=3)
    assert max(counts(records).values()) == 5
    assert run_file.stopped.startswith(
        "after 5 rounds, 2 more than planned, since rounds lay far apart, still not within"
    )
    assert sum(isinstance(one, Told) and one.text.startswith("rounds lie far apart, single/") for one in told) == 2
    slices = [event for event in told if isinstance(event, SliceDone)]
    assert [slices[-1].done, slices[-1].total] == [sum(2 * len(record.rounds) for record in records.values())] * 2
    rounds = [event.rounds for event in told if isinstance(event, ServersUp)]
    assert (rounds[0], rounds[-1]) == ("3", "5 at most")


def test_rounds_that_agree_are_not_added_to_and_nothing_is_said(measured: Runner) -> None:
    run_file, records, _ = measured({"threaded/plain": QUIET, "single/plain": QUIET}, precision=0.0, rounds=3)
    assert ({len(record.rounds) for record in records.values()}, run_file.stopped) == ({3}, "")


def test_a_suite_can_forbid_rounds_that_are_added(measured: Runner) -> None:
    _, records, _ = measured({"single/plain": Behaviour(noise=0.9)}, precision=0.0, rounds=3, extra_rounds=0)
    assert {len(record.rounds) for record in records.values()} == {3}


def test_loud_servers_are_measured_up_to_the_most_rounds(measured: Runner) -> None:
    run_file, records, _ = measured({"single/plain": LOUD})
    assert {len(record.rounds) for record in records.values()} == {6}
    said, _, named = run_file.stopped.partition(": ")
    assert said == "6 rounds, the most asked for; not within 5 %"
    assert {part.partition(" (")[0] for part in named.split(", ")} == {
        record.id for record in records.values() if record.cell.server == "single" and not record.cell.open
    }


def test_a_comparison_that_is_known_is_measured_no_further_and_its_open_loops_neither(measured: Runner) -> None:
    _, records, _ = measured({"threaded/plain": QUIET, "single/plain": MIXED})
    assert counts(records) == {
        "single/plain·c8": 2, "single/plain·open50·c8": 2, "single/plain·c32": 6, "single/plain·open50·c32": 6
    }  # fmt: skip
    reference = records["threaded/plain·t4·c32"]
    assert [round_.number for round_ in reference.rounds] == [1, 2, 3, 4, 5, 6]
    assert len(records["threaded/plain·t4·c8"].rounds) == 2


def test_all_cells_of_a_comparison_share_a_group() -> None:
    found = groups(expand(MATRIX, "s"))
    assert len(set(found.values())) == 2
    assert all(own.rpartition("·")[2] == its.rpartition("·")[2] for own, its in found.items())


@pytest.mark.parametrize(
    "behaviour", [Behaviour(start_error="no module"), Behaviour(noise=0.3, rps=900, errors={"reset": 400})]
)
def test_cells_that_fail_or_are_void_hold_nobody_up(behaviour: Behaviour, measured: Runner) -> None:
    run_file, records, _ = measured({"single/plain": behaviour, "threaded/plain": QUIET})
    assert {len(record.rounds) for record in records.values() if record.outcome != "not_started"} == {2}
    assert run_file.stopped.endswith("after 2 rounds")


def test_without_any_ratio_there_is_nothing_to_know(measured: Runner) -> None:
    run_file, _, _ = measured({"threaded/plain": Behaviour(start_error="no module")})
    assert run_file.stopped == "there is no ratio to know: after 2 rounds"


def test_one_round_tells_no_precision(measured: Runner) -> None:
    _, records, _ = measured({"threaded/plain": QUIET, "single/plain": QUIET}, rounds=1)
    assert {len(record.rounds) for record in records.values()} == {2}


def test_events_do_not_know_how_many_rounds_there_will_be(measured: Runner) -> None:
    _, records, told = measured({"single/plain": LOUD})
    slices = [event for event in told if isinstance(event, SliceDone)]
    assert [event.done for event in slices] == list(range(1, 6 * 2 * len(records) + 1))
    assert {event.total for event in slices} == {None}
    assert {event.rounds for event in told if isinstance(event, ServersUp)} == {"6 at most"}
    texts = [event.text for event in told if isinstance(event, Told) and event.text.startswith("after round")]
    assert len(texts) == 5
    assert texts[0].startswith("after round 2 2 ratios are not yet known to 5 %, single/plain·")


def test_events_of_a_fixed_number_of_rounds_count_to_it(measured: Runner) -> None:
    _, records, told = measured({}, precision=0.0)
    slices = [event for event in told if isinstance(event, SliceDone)]
    assert [(event.done, event.total) for event in slices[-1:]] == [(2 * 2 * len(records),) * 2]
    assert {event.rounds for event in told if isinstance(event, ServersUp)} == {"2"}


class Interrupted(MemoryEngine):
    """Ctrl-C comes when the fourth round begins: after a null responder for each ceiling, and two servers a round."""

    def start(self, launch: Launch, seat: Seat | None = None) -> Any:
        if self.started >= 1 + 3 * 2:
            raise KeyboardInterrupt
        return super().start(launch, seat)


def test_an_interrupted_run_goes_on_to_the_same_end(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(order(tmp_path), Interrupted({"single/plain": MIXED, "threaded/plain": QUIET}), lambda _: None)
    assert sorted({len(record.rounds) for record in read_run(tmp_path)[1]}) == [2, 3]
    resumed, records = run(
        order(tmp_path, resume=True), MemoryEngine({"single/plain": MIXED, "threaded/plain": QUIET}), lambda _: None
    )
    assert resumed.complete
    assert sorted({len(record.rounds) for record in records}) == [2, 6]
    assert resumed.stopped.startswith("6 rounds, the most asked for")


def test_a_finished_run_goes_on_to_a_finer_precision_but_not_to_other_slices(tmp_path: Path) -> None:
    engine = MemoryEngine({"single/plain": MIXED, "threaded/plain": QUIET})
    run(order(tmp_path), engine, lambda _: None)
    further = order(tmp_path, resume=True, precision=0.01, max_rounds=8)
    run_file, records = run(further, engine, lambda _: None)
    assert sorted({len(record.rounds) for record in records}) == [2, 8]
    assert run_file.schedule["precision"] == 0.01
    assert [round_.number for round_ in records[0].rounds] == list(range(1, len(records[0].rounds) + 1))
    with pytest.raises(SpecError, match="another matrix"):
        run(order(tmp_path, resume=True, slices=3), engine, lambda _: None)


def test_half_width_is_a_share_of_the_ratio() -> None:
    assert half_width(Estimate(value=2.0, low=1.9, high=2.2)) == pytest.approx(0.075)
    assert half_width(Estimate(value=2.0, low=None, high=None)) == math.inf


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.03, "3 %"), (0.0412, "4.1 %"), (0.005, "0.5 %"), (0.6, "60 %"), (1.5, "150 %"), (math.inf, "unknown")],
)
def test_percent(share: float, text: str) -> None:
    assert percent(share) == text
