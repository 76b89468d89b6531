"""Open loops: their rate is a share of what the closed loop has reached in the same round, on the same server."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from loadgen.contract import Late, LoadResult, LoadSpec, encode, schemas
from orchestrator.engines.memory import Behaviour, MemoryEngine
from orchestrator.engines.protocol import Placement
from orchestrator.evidence.model import Record, RunFile
from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import parse_matrix
from orchestrator.matrix.models import Matrix, Schedule
from orchestrator.pipeline import Order, run
from orchestrator.probes.launching import Plan
from orchestrator.probes.load.measure import arrivals_seed, slice_order

Runner = Callable[..., tuple[RunFile, dict[str, Record]]]
SUITE = """
suites:
  s:
    baseline: threaded/plain
    axes: {server: [threaded, single], app: flask, open: [0, 50, 90], connections: [32, 64]}
    schedule: {rounds: 2, slices: 3, slice_s: 0.5}
"""
MATRIX: Matrix = parse_matrix(
    (ROOT / "tests/cases/four-servers.matrix.yaml").read_text(encoding="utf-8") + SUITE
).matrix


@pytest.fixture
def measured(tmp_path: Path) -> Runner:
    """Runs the suite; records by id without what all have in common."""

    def go(behaviours: Mapping[str, Behaviour] | None = None, **order: Any) -> tuple[RunFile, dict[str, Record]]:
        selection = expand(MATRIX, "s")
        run_file, records = run(Order(MATRIX, selection, tmp_path, **order), MemoryEngine(behaviours), lambda _: None)
        return run_file, {record.id.replace("·slim·wheel·py3.13·flask·w1", ""): record for record in records}

    return go


def closed_rps(record: Record, round_: int, before: int) -> list[float]:
    return [s.load["rps"] for s in record.rounds[round_].slices if s.order < before]


def test_the_rate_is_a_share_of_the_closed_loops_median_so_far(measured: Runner) -> None:
    _, records = measured({"single/plain": Behaviour(noise=0.2)})
    closed = records["single/plain·c32"]
    for share, record in ((0.5, records["single/plain·open50·c32"]), (0.9, records["single/plain·open90·c32"])):
        for at, round_ in enumerate(record.rounds):
            for slice_ in round_.slices:
                seen = sorted(closed_rps(closed, at, slice_.order))
                middle = (seen[(len(seen) - 1) // 2] + seen[len(seen) // 2]) / 2
                assert slice_.rate == pytest.approx(share * middle)


def test_a_closed_loop_has_no_rate_and_an_open_one_no_ratio_and_no_ceiling(measured: Runner) -> None:
    run_file, records = measured()
    closed, opened = records["single/plain·c32"].summary, records["single/plain·open50·c32"].summary
    assert closed
    assert opened
    assert (closed.rate_asked, closed.rate_share) == (None, None)
    assert closed.ratio
    assert closed.ceiling_share
    assert (opened.ratio, opened.ceiling_share) == (None, None)
    assert opened.cpu_ratio
    assert opened.rate_asked == pytest.approx(closed.rps.value / 2, rel=0.1)
    assert opened.rate_share == 1
    assert opened.latency_us["mean"] < closed.latency_us["mean"]
    assert {one.connections for one in run_file.ceilings} == {32, 64}


def test_its_reference_is_the_baseline_at_the_same_share(measured: Runner) -> None:
    _, records = measured()
    assert records["single/plain·open50·c32"].reference.endswith(
        "threaded/plain·slim·wheel·py3.13·flask·w1·t4·open50·c32"
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_closed_loop_comes_before_its_open_ones_in_the_first_pass_alone(seed: int) -> None:
    cells = expand(MATRIX, "s").cells
    plan = Plan(MATRIX, cells, {}, Schedule(), Placement((0,), (1,), False), seed)
    first, others = slice_order(plan, 1, 0), [slice_order(plan, 1, at) for at in range(1, 6)]
    assert sorted(cell.id for cell in first) == sorted(cell.id for cell in cells)
    assert all(first.index(cell.closed) <= first.index(cell) for cell in first)
    assert any(order.index(cell.closed) > order.index(cell) for order in others for cell in order)


def test_all_cells_of_a_pass_get_the_same_arrivals_and_each_pass_others() -> None:
    seeds = {arrivals_seed(1, round_, slice_) for round_ in range(1, 9) for slice_ in range(4)}
    assert len(seeds) == 32
    assert arrivals_seed(1, 1, 0) == arrivals_seed(1, 1, 0) != arrivals_seed(2, 1, 0)


def spec_of(result: LoadResult) -> LoadSpec:
    assert result.spec
    return result.spec


def test_the_load_generator_is_asked_for_random_arrivals(measured: Runner) -> None:
    specs: list[LoadSpec] = []

    def keep(result: LoadResult) -> LoadResult:
        specs.append(spec_of(result))
        return result

    measured({"single/plain": Behaviour(load=keep)})
    for spec in specs:
        jsonschema.validate(json.loads(encode(spec)), schemas()["load-spec"])
    assert {spec.loop for spec in specs} == {"closed", "open"}
    assert {spec.arrivals for spec in specs if spec.rate} == {"poisson"}
    assert {spec.seed for spec in specs if spec.rate} == {
        arrivals_seed(1, round_, slice_) for round_ in (1, 2) for slice_ in range(3)
    }


def test_what_the_memory_engine_says_of_an_open_loop_is_a_load_generators_document(measured: Runner) -> None:
    schema = schemas()["load-result"]
    _, records = measured()
    for slice_ in records["single/plain·open90·c32"].rounds[0].slices:
        jsonschema.validate(slice_.load, schema)


def test_without_a_closed_figure_there_is_no_rate(measured: Runner) -> None:
    def nothing(result: LoadResult) -> LoadResult:
        return result if spec_of(result).rate else replace(result, rps=0.0, requests=0)

    _, records = measured({"single/plain": Behaviour(load=nothing)})
    failed = records["single/plain·open50·c32"]
    assert failed.outcome == "load_failed"
    assert failed.reason
    assert "has no figure in this round" in failed.reason.line
    assert records["threaded/plain·t4·open50·c32"].outcome == "measured"


def slowed(result: LoadResult) -> LoadResult:
    """Faster alone than under a rate."""
    return replace(result, rps=result.rps * 0.9) if spec_of(result).rate else result


def late(result: LoadResult) -> LoadResult:
    late = Late(bound_us=1000.0, max_us=7000.0, requests=50)
    return replace(result, client_late=True, late=late) if spec_of(result).rate else result


@pytest.mark.parametrize(
    ("behaviour", "rule"),
    [(Behaviour(load=slowed), "overloaded"), (Behaviour(load=late), "client_late"),
     (Behaviour(client_share=0.9), "client_bound")],
)  # fmt: skip
def test_verdicts_of_an_open_loop(behaviour: Behaviour, rule: str, measured: Runner) -> None:
    _, records = measured({"single/plain": behaviour})
    found = [(verdict.rule, verdict.effect) for verdict in records["single/plain·open50·c32"].verdicts]
    assert found == [(rule, "unranked")]
    assert records["threaded/plain·t4·open50·c32"].verdicts == []


def test_littles_law_is_for_closed_loops(measured: Runner) -> None:
    _, records = measured({"single/plain": Behaviour()})
    assert all(record.verdicts == [] for record in records.values())


def test_rates_come_back_from_the_records_of_a_run_that_is_gone_on_with(measured: Runner) -> None:
    _, before = measured()
    _, after = measured(resume=True)
    kept = {own: record.model_copy(update={"written": "", "judged": None}) for own, record in before.items()}
    assert kept == {own: record.model_copy(update={"written": "", "judged": None}) for own, record in after.items()}


def test_a_run_without_open_loops_asks_for_none(tmp_path: Path) -> None:
    selection = expand(MATRIX, "s")
    closed = dataclasses.replace(selection, cells=tuple(cell for cell in selection.cells if not cell.open))
    _, records = run(Order(MATRIX, closed, tmp_path), MemoryEngine(), lambda _: None)
    assert {slice_.rate for record in records for round_ in record.rounds for slice_ in round_.slices} == {None}
