"""The calibration bench without servers: sides, slow-down, rules, lines, and whole sessions on the memory engine."""

from __future__ import annotations

import argparse
import json
import math
import re
from pathlib import Path

import pytest
from scipy import stats as scipy_stats  # type: ignore[import-untyped]

from bench import method_bench, method_table
from bench.lines import append_line, read_lines, rounded
from bench.method_table import AGAIN, BASELINE, METHODS, SLOW, Session
from bench.sides import Sides, calibrate, cells_of, matrix_of, sides_of, slowed
from bench.slices import Slice, metrics_of, slice_of
from orchestrator.engines.memory import Behaviour, MemoryEngine
from orchestrator.errors import LoadFailed, SpecError
from orchestrator.matrix.models import Schedule
from tests.unit.loads import load_of

SERVER = "uvicorn/standard"
SCHEDULE = Schedule(rounds=4, slices=3, slice_s=0.5, warmup_s=0.1, first_warmup_s=0.1)
SETTINGS = {"server": SERVER, "slow_down": 0.05}


def memory(noise: float = 0.004, **rps: float) -> MemoryEngine:
    """An engine whose sides have these figures; `first` is the one without a name of its own."""
    names = {side: SERVER if side == "first" else f"{SERVER}-{side}" for side in rps}
    return MemoryEngine({names[side]: Behaviour(rps=value, noise=noise) for side, value in rps.items()})


def sides(engine: MemoryEngine, *names: str) -> Sides:
    return sides_of(engine, matrix_of(SERVER, dict.fromkeys(names, 5), 8, SCHEDULE), lambda _: None)


@pytest.fixture(scope="module")
def whole() -> list[Session]:
    """Sessions in which `slow` has 5 % fewer requests a second."""
    engine = memory(first=10_500, again=10_500, slow=10_000)
    plan = sides(engine, BASELINE, AGAIN, SLOW)
    made = [method_bench.session(engine, plan, number, SETTINGS) for number in (1, 2, 3)]
    assert engine.started == engine.stopped == 3 * (3 * SCHEDULE.rounds + 3)
    return made


def runs(**values: list[float]) -> Session:
    """A session of the usual way alone, sides in the order given."""
    usual = {side: [Slice(value, 1e6 / value, 1.0, 0.5, 0.0) for value in some] for side, some in values.items()}
    return Session(1, SETTINGS, {}, usual, 15, 15, 60)


# --- sides and slow-down ----------------------------------------------------------------------------------------------


def test_sides_are_one_server_launched_apart() -> None:
    cells = cells_of(matrix_of(SERVER, {BASELINE: 10, AGAIN: 10, SLOW: 12}, 8, SCHEDULE))
    assert [cell.app for cell in cells.values()] == ["raw-asgi"] * 3
    assert len({cell.launch_id for cell in cells.values()}) == 3
    assert len({cell.image for cell in cells.values()}) == 1
    assert len({cell.variant.run for cell in cells.values()}) == 1


def test_a_server_with_several_variants_must_be_named_whole() -> None:
    with pytest.raises(SpecError, match="several variants"):
        cells_of(matrix_of("uvicorn", {BASELINE: 10}, 8, SCHEDULE))


@pytest.mark.parametrize(("overhead_us", "iteration_us"), [(0, 0.07), (40, 0.07), (400, 0.1)])
def test_the_whole_request_costs_more_by_the_share(overhead_us: float, iteration_us: float) -> None:
    full_us = overhead_us + 5000 * iteration_us
    slow_us = overhead_us + slowed(5000, overhead_us, full_us, 0.05) * iteration_us
    assert slow_us / full_us == pytest.approx(1.05, rel=2e-4)


def test_a_loop_that_costs_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="cost nothing"):
        slowed(5, 100, 99, 0.05)


def test_calibration_finds_what_a_request_costs() -> None:
    engine = memory(first=20_000, baseline=2_000)
    empty_us, full_us = calibrate(engine, sides(engine, "empty", BASELINE), pairs=4, slice_s=0.5)
    assert (empty_us, full_us) == pytest.approx((50, 500), rel=0.02)
    assert engine.started == engine.stopped == 2


def test_a_slice_with_an_error_is_no_figure() -> None:
    load = load_of(errors={"reset": 1}, requests=5, first_error={"kind": "reset", "detail": ""})
    with pytest.raises(LoadFailed, match="5 right answers"):
        slice_of(load)


def test_where_cpu_is_not_told_there_is_one_metric() -> None:
    assert metrics_of([Slice(100.0, None, 1.0, 0.5, 0.0)]) == ["rps"]


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_a_session_finds_five_percent_and_no_more(whole: list[Session]) -> None:
    row = method_table.row(METHODS[0], whole, "rps")
    assert (row.sessions, row.false, row.found, row.seconds) == (3, 0, 3, 6.0)
    cpu = method_table.row(METHODS[0], whole, "cpu_us")
    assert (cpu.false, cpu.found) == (0, 3)


def test_a_line_holds_the_whole_session(whole: list[Session], tmp_path: Path) -> None:
    for session in whole:
        append_line(tmp_path / "a.jsonl", rounded(session.as_json(), 17))
    again = [Session.from_json(line) for line in read_lines(tmp_path / "a.jsonl")]
    assert again == whole
    assert list(again[0].usual) == list(whole[0].usual)
    assert method_table.table(again) == method_table.table(whole)
    with pytest.raises(ValueError, match="not of this bench"):
        Session.from_json({"schema": "noise-bench/1"})


def test_the_table_has_a_row_for_each_method_and_metric(whole: list[Session]) -> None:
    text = method_table.table(whole)
    for method in (*METHODS, *method_table.CANDIDATES):
        assert text.count(f"\n{method.name} ") == 2
    assert "requests per second: slow over baseline 0.95" in text
    assert re.search(r"server CPU per request: slow over baseline 1\.0[45]", text)


def test_sessions_together_have_the_rounds_of_all(whole: list[Session]) -> None:
    (pair,) = method_table.together(whole, 2)
    assert pair.ours[SLOW] == [*whole[0].ours[SLOW], *whole[1].ours[SLOW]]
    assert pair.ours_s == 2 * whole[0].ours_s
    assert method_table.together(whole, 4) == []


def test_turns_are_the_sessions_own_and_let_neighbours_compare() -> None:
    drawn = {method_bench.turns(number) for number in range(40)}
    assert drawn == {
        (first, order) for first in (True, False) for order in ((AGAIN, BASELINE, SLOW), (SLOW, BASELINE, AGAIN))
    }


# --- rules of the usual way -------------------------------------------------------------------------------------------


def test_one_run_each_is_the_pair_that_stood_side_by_side() -> None:
    session = runs(again=[1, 2, 3], baseline=[10, 20, 30], slow=[7, 8, 9])
    assert session.neighbours(AGAIN, BASELINE, "rps") == (3, 10)
    assert session.neighbours(SLOW, BASELINE, "rps") == (7, 30)


@pytest.mark.parametrize(("slow", "over", "different"), [(98.5, 0.02, False), (97.5, 0.02, True), (96, 0.05, False)])
def test_over_a_share(slow: float, over: float, different: bool) -> None:
    session = runs(baseline=[100.0, 100, 100], slow=[slow, 0.1, 200])
    assert method_table.of_three(session, SLOW, BASELINE, "rps", over=over).different is different
    assert method_table.single(session, SLOW, BASELINE, "rps", over=over).different is different


@pytest.mark.parametrize(("slow", "different"), [([1.0, 2, 3], True), ([1.0, 2, 5], False), ([7.0, 8, 9], True)])
def test_ranges(slow: list[float], different: bool) -> None:
    session = runs(baseline=[4.0, 5, 6], slow=slow)
    assert method_table.ranges_apart(session, SLOW, BASELINE, "rps").different is different


def test_students_t_of_three_runs_is_that_of_scipy() -> None:
    session = runs(baseline=[100.0, 110, 103], slow=[95.0, 99, 101])
    logs = ([math.log(v) for v in session.runs(side, "rps")] for side in (SLOW, BASELINE))
    expected = scipy_stats.ttest_ind(*logs).confidence_interval(0.95)
    found = method_table.students(session, SLOW, BASELINE, "rps")
    assert found.half_width == pytest.approx((expected.high - expected.low) / 2, rel=1e-3)
    assert math.log(found.ratio) == pytest.approx((expected.high + expected.low) / 2)
    assert found.different is bool(expected.high < 0)


def test_a_difference_in_the_wrong_direction_is_not_found() -> None:
    method = METHODS[1]
    faster, slower = (runs(again=[100.0], baseline=[100.0], slow=[value]) for value in (120.0, 80.0))
    assert [method_table.row(method, [one], "rps").found for one in (faster, slower)] == [0, 1]
    assert [method_table.row(method, [one], "cpu_us").found for one in (faster, slower)] == [0, 1]


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_line_that_was_cut_off_is_passed_over_and_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.jsonl"
    append_line(path, {"a": 1})
    with path.open("a") as file:
        file.write('{"a": 2, "b"')
    assert read_lines(path) == [{"a": 1}]
    append_line(path, {"a": 3})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"a": 1}, {"a": 3}]
    assert read_lines(tmp_path / "none") == []


def test_floats_are_rounded_and_nothing_else() -> None:
    assert rounded({"a": [1.23456789, 7, None], "b": ("x", 123456789.0)}, 3) == {
        "a": [1.23, 7, None],
        "b": ["x", 1.23e8],
    }


def test_sessions_measured_in_another_way_are_not_mixed(tmp_path: Path) -> None:
    options = argparse.Namespace(
        server=SERVER, connections=8, slow_down=0.05, iterations=5, seconds=6, rounds=4, slice=0.5, out=tmp_path / "a"
    )
    engine = memory()
    settings = method_bench.asked(options, engine) | {"slow_iterations": 6}
    earlier = [Session(1, settings, {}, {}, 6, 6, 60)]
    assert method_bench.settings_of(options, engine, earlier) == settings
    options.connections = 16
    with pytest.raises(LoadFailed, match="another connections"):
        method_bench.settings_of(options, engine, earlier)


def test_work_that_fails_is_tried_three_times() -> None:
    tried: list[int] = []

    def fails_until(last: int) -> int:
        tried.append(len(tried) + 1)
        if tried[-1] < last:
            raise LoadFailed("busy")
        return tried[-1]

    assert method_bench.patiently("it", lambda: fails_until(3)) == 3
    tried.clear()
    with pytest.raises(LoadFailed, match="busy"):
        method_bench.patiently("it", lambda: fails_until(4))


@pytest.mark.parametrize(("seconds", "rounds"), [(1.0, 2), (15.0, 1)])
def test_too_few_slices_or_rounds_are_refused(seconds: float, rounds: int) -> None:
    with pytest.raises(SpecError, match="give no interval"):
        method_bench.schedule_of(argparse.Namespace(seconds=seconds, rounds=rounds, slice=0.5))
