"""From matrix to records on the memory engine: failures are records, runs resume, the same seed gives the same run."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jsonschema
import pytest

from orchestrator.cells.expand import expand
from orchestrator.engines.memory import Behaviour, MemoryEngine, MemoryServer
from orchestrator.engines.protocol import Launch, Seat
from orchestrator.errors import ServerFailed, SpecError
from orchestrator.images.plan import ROOT
from orchestrator.measure.events import Event, SliceDone
from orchestrator.pipeline import Order, run
from orchestrator.records.store import read_run
from orchestrator.spec.loading import load_matrix
from tests.unit.measure.conftest import Runner

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
    schema = json.loads((ROOT / "loadgen" / "schema" / "result.json").read_text())
    _, records = run_smoke()
    for record in records.values():
        for slice_ in record.rounds[0].slices:
            jsonschema.validate({**slice_.load, "spec": {}}, schema)
