"""From matrix to records on the memory engine: failures are records, runs resume, the same seed gives the same run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import count, cycle
from pathlib import Path

import jsonschema
import pytest

from loadgen.contract import LoadResult, schemas
from orchestrator.engines.memory import Behaviour, MemoryEngine, MemoryServer
from orchestrator.engines.protocol import Launch, Seat
from orchestrator.errors import ServerFailed, SpecError
from orchestrator.evidence.store import read_run, write_records, write_run
from orchestrator.images.plan import ROOT, images_of
from orchestrator.judge.assemble import probed_record
from orchestrator.judge.judgement import judge_again
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.pipeline import Order, run
from orchestrator.probes.events import Event, SliceDone
from tests.unit.loads import changed, histogram_of
from tests.unit.probes.conftest import Runner

MATRIX = load_matrix(ROOT / "matrix.yaml").matrix


FIRST_ROUND = 3
"""Servers that are started up to the end of the first round: the null responder and two."""


class Flaky(MemoryEngine):
    """Its waitress starts in the first round only."""

    def start(self, launch: Launch, seat: Seat | None = None) -> MemoryServer:
        if launch.variant.server == "waitress" and self.started >= FIRST_ROUND:
            raise ServerFailed("port in use")
        return super().start(launch, seat)


class Interrupted(MemoryEngine):
    """Ctrl-C comes when the second round begins."""

    def start(self, launch: Launch, seat: Seat | None = None) -> MemoryServer:
        if self.started >= FIRST_ROUND:
            raise KeyboardInterrupt
        return super().start(launch, seat)


def order(folder: Path, *, resume: bool = False, seed: int = 1) -> Order:
    return Order(MATRIX, expand(MATRIX, "smoke"), folder, seed, resume)


def quiet(event: Event) -> None:
    """Nobody watches."""


@pytest.mark.parametrize(
    ("key", "behaviour", "outcome", "line"),
    [
        ("waitress", Behaviour(build_error="the index failed"), "not_built", "the index failed"),
        ("waitress", Behaviour(install_error="no ev.h"), "not_installed", "build_error: no ev.h"),
        ("waitress/threads", Behaviour(start_error="no module"), "not_started", "no module"),
    ],
)
def test_a_failure_is_a_record_and_the_others_go_on(
    key: str, behaviour: Behaviour, outcome: str, line: str, run_smoke: Runner
) -> None:
    _, records = run_smoke({key: behaviour})
    failed = records["waitress"]
    assert (failed.outcome, failed.reason and failed.reason.line) == (outcome, line)
    assert failed.summary is None
    assert records["uvicorn"].outcome == "measured"


def test_a_failed_install_keeps_its_report(run_smoke: Runner) -> None:
    _, records = run_smoke({"waitress": Behaviour(install_error="no ev.h")})
    image = records["waitress"].image
    assert image is not None
    assert image.install["outcome"] == "failed"


def test_a_server_that_starts_in_some_rounds_is_mixed(tmp_path: Path) -> None:
    _, records = run(order(tmp_path), Flaky(), quiet)
    waitress = records[1]
    assert [bool(round_.failure) for round_ in waitress.rounds] == [False, True]
    assert [verdict.rule for verdict in waitress.verdicts] == ["mixed"]


def test_slices_and_rounds_are_all_there(run_smoke: Runner) -> None:
    run_file, records = run_smoke()
    schedule = run_file.schedule
    for record in records.values():
        assert len(record.rounds) == schedule["rounds"]
        assert all(len(round_.slices) == schedule["slices"] for round_ in record.rounds)
    orders = sorted(s.order for record in records.values() for s in record.rounds[0].slices)
    assert orders == list(range(len(records) * schedule["slices"]))


def test_the_same_seed_gives_the_same_figures_and_another_another_order(tmp_path: Path) -> None:
    def orders(name: str, seed: int) -> list[int]:
        _, records = run(order(tmp_path / name, seed=seed), MemoryEngine(), quiet)
        return [s.order for record in records for round_ in record.rounds for s in round_.slices]

    first = orders("a", 1)
    assert first == orders("b", 1)
    assert any(first != orders(f"seed{seed}", seed) for seed in range(2, 8))


def test_an_interrupted_run_keeps_whole_rounds_and_goes_on(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(order(tmp_path), Interrupted(), quiet)
    kept, records = read_run(tmp_path)
    assert not kept.complete
    assert [len(record.rounds) for record in records] == [1, 1]

    slices: list[SliceDone] = []
    run_file, resumed = run(
        order(tmp_path, resume=True),
        MemoryEngine(),
        lambda event: slices.append(event) if isinstance(event, SliceDone) else None,
    )
    assert run_file.complete
    assert [len(record.rounds) for record in resumed] == [2, 2]
    assert resumed[0].rounds[0] == records[0].rounds[0]
    assert len(slices) == 2 * run_file.schedule["slices"]


def test_records_of_two_configurations_are_never_mixed(tmp_path: Path) -> None:
    run(order(tmp_path), MemoryEngine(), quiet)
    with pytest.raises(SpecError, match="another matrix, code, image or machine"):
        run(order(tmp_path, resume=True, seed=2), MemoryEngine(), quiet)


def test_another_schedule_is_another_run(tmp_path: Path) -> None:
    run(order(tmp_path), MemoryEngine(), quiet)
    longer = expand(MATRIX, "smoke")
    schedule = longer.schedule.model_copy(update={"rounds": 3})
    with pytest.raises(SpecError):
        changed = dataclasses.replace(longer, schedule=schedule)
        run(Order(MATRIX, changed, tmp_path, 1, resume=True), MemoryEngine(), quiet)


def test_written_records_are_what_was_returned(tmp_path: Path) -> None:
    run_file, records = run(order(tmp_path), MemoryEngine(), quiet)
    stored_run, stored = read_run(tmp_path)
    assert stored_run.model_dump(mode="json") == run_file.model_dump(mode="json")
    assert [record.model_dump(mode="json") for record in stored] == [r.model_dump(mode="json") for r in records]
    assert not list(tmp_path.rglob("*.tmp"))


def silent(load: LoadResult) -> LoadResult:
    """A slice in which no answer came: what is a share of the right ones is null."""
    of_none = {"histogram": histogram_of(), "count": 0, "min": None, "mean": None, "max": None}
    return changed(load, requests=0, rps=0.0, latency=of_none, connections={"per_request": None})


def garbled(load: LoadResult) -> LoadResult:
    """The schema allows any text as a histogram."""
    return changed(load, latency={"histogram": "not one"})


def second(change: Callable[[LoadResult], LoadResult]) -> Callable[[LoadResult], LoadResult]:
    """Changes every second document."""
    turn = cycle((False, True))
    return lambda load: change(load) if next(turn) else load


def test_a_slice_without_a_right_answer_counts_as_none_right(run_smoke: Runner) -> None:
    _, records = run_smoke({"waitress/threads": Behaviour(load=second(silent))})
    waitress = records["waitress"]
    assert waitress.outcome == "measured"
    assert [(v.rule, v.effect, v.text) for v in waitress.verdicts] == [("errors", "void", "no answer at all")]
    assert records["uvicorn"].verdicts == []


def test_a_cell_without_any_right_answer_has_no_figures(run_smoke: Runner) -> None:
    _, records = run_smoke({"waitress/threads": Behaviour(load=silent)})
    waitress = records["waitress"]
    assert (waitress.outcome, waitress.summary) == ("load_failed", None)
    assert waitress.reason is not None
    assert waitress.reason.line == "no right answer within any slice"
    assert all(round_.slices for round_ in waitress.rounds)


def test_a_cell_that_cannot_be_judged_keeps_its_rounds_and_costs_no_other_anything(run_smoke: Runner) -> None:
    run_file, records = run_smoke({"waitress/threads": Behaviour(load=garbled)})
    waitress = records["waitress"]
    assert (waitress.outcome, waitress.summary, waitress.verdicts) == ("not_judged", None, [])
    assert waitress.reason is not None
    assert waitress.reason.stage == "judge"
    assert "orchestrator/judge/latency.py" in waitress.reason.line
    assert [len(round_.slices) for round_ in waitress.rounds] == [run_file.schedule["slices"]] * 2
    assert records["uvicorn"].outcome == "measured"
    assert run_file.complete


def test_a_reference_that_cannot_be_judged_leaves_the_others_without_ratios(run_smoke: Runner) -> None:
    _, records = run_smoke({"uvicorn/standard": Behaviour(load=garbled)})
    summary = records["waitress"].summary
    assert records["uvicorn"].outcome == "not_judged"
    assert summary is not None
    assert (summary.ratio, summary.cpu_ratio) == (None, None)


def test_a_section_that_cannot_be_stored_is_kept_in_the_reason() -> None:
    selection = expand(MATRIX, "startup", only=("waitress*",))
    image = MemoryEngine().build(images_of(MATRIX, selection.cells)[0], lambda _: None)
    record = probed_record(selection, selection.cells[0], image, {"starts": [{"first_us": 1.5}]})
    assert (record.outcome, record.startup) == ("not_judged", None)
    assert record.reason is not None
    assert '"first_us": 1.5' in record.reason.detail


def test_what_was_measured_is_on_disk_before_it_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judging ends the process in its midst, as a kill or a lack of memory does."""
    calls = count()

    def killed(*_: object) -> None:
        if next(calls) >= 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("orchestrator.judge.assemble.alone", killed)
    with pytest.raises(KeyboardInterrupt):
        run(order(tmp_path), MemoryEngine(), quiet)
    monkeypatch.undo()
    _, kept = read_run(tmp_path)
    assert [(record.outcome, len(record.rounds)) for record in kept] == [("not_judged", 1)] * 2
    _, again = judge_again(tmp_path)
    assert [(record.outcome, len(record.rounds)) for record in again] == [("measured", 1)] * 2
    _, whole = run(order(tmp_path, resume=True), MemoryEngine(), quiet)
    assert [len(record.rounds) for record in whole] == [2, 2]


def test_judging_again_says_which_code_did_and_leaves_what_was_measured(tmp_path: Path) -> None:
    before, measured = run(order(tmp_path), MemoryEngine(), quiet)
    assert before.judged is not None
    assert (before.judged.commit, before.judged.digest) == (before.code["commit"], before.code["digest"])
    write_run(tmp_path, before.model_copy(update={"code": {"commit": "0000000", "digest": "00"}, "judged": None}))
    write_records(tmp_path, [record.model_copy(update={"verdicts": [], "judged": None}) for record in measured])
    after, again = judge_again(tmp_path)
    assert after.code == {"commit": "0000000", "digest": "00"}
    assert after.judged is not None
    assert after.judged.commit == before.code["commit"]
    assert [(r.rounds, r.summary, r.verdicts) for r in again] == [(r.rounds, r.summary, r.verdicts) for r in measured]
    assert read_run(tmp_path) == (after, again)


def test_a_run_without_rounds_is_not_judged_again(tmp_path: Path) -> None:
    run(Order(MATRIX, expand(MATRIX, "startup", only=("waitress*",)), tmp_path), MemoryEngine(), quiet)
    with pytest.raises(SpecError, match="holds no rounds"):
        judge_again(tmp_path)


def test_records_name_their_run_and_a_resumed_one_keeps_its_name(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(order(tmp_path / "one"), Interrupted(), quiet)
    (tmp_path / "one").rename(tmp_path / "moved")
    run_file, records = run(order(tmp_path / "moved", resume=True), MemoryEngine(), quiet)
    assert run_file.id == "one"
    assert {record.run for record in records} == {"one"}


@pytest.mark.parametrize("suite", ["startup", "shutdown", "installs", "deploy"])
def test_costs_of_a_probe_that_times_nothing_are_unknown_and_not_nothing(suite: str, tmp_path: Path) -> None:
    run_file, _ = run(Order(MATRIX, expand(MATRIX, suite, only=("waitress*",)), tmp_path), MemoryEngine(), quiet)
    costs = run_file.costs
    assert costs["rounds_s"] is not None
    assert costs["rounds_s"] > 0
    assert [costs[name] for name in ("planned_s", "overhead_s_per_cell", "orchestrator_cpu_share")] == [None] * 3


def test_costs_add_up_over_all_that_a_run_was_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(order(tmp_path), Interrupted(), quiet)
    half, _ = read_run(tmp_path)
    whole, _ = run(order(tmp_path, resume=True), MemoryEngine(), quiet)
    assert half.costs["planned_s"] is not None
    assert whole.costs["planned_s"] == pytest.approx(2 * half.costs["planned_s"])


def test_every_cell_is_a_share_of_the_load_generators_ceiling(run_smoke: Runner) -> None:
    run_file, records = run_smoke(
        {"waitress/threads": Behaviour(rps=25_000, noise=0), "null/bytes-23": Behaviour(rps=50_000, noise=0)}
    )
    assert [(c.body_bytes, c.connections, c.rps) for c in run_file.ceilings] == [(23, 8, 50_000)]
    summary = records["waitress"].summary
    assert summary is not None
    assert summary.ceiling_share == pytest.approx(0.5)


def test_a_ceiling_that_cannot_be_measured_is_left_out(run_smoke: Runner) -> None:
    run_file, records = run_smoke({"null/bytes-23": Behaviour(start_error="no room")})
    assert run_file.ceilings == []
    assert [record.summary and record.summary.ceiling_share for record in records.values()] == [None, None]


def test_the_memory_engine_speaks_the_load_generators_contract(run_smoke: Runner) -> None:
    schema = schemas()["load-result"]
    _, records = run_smoke()
    for record in records.values():
        for slice_ in record.rounds[0].slices:
            jsonschema.validate(slice_.load, schema)
