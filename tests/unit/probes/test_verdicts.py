"""Each verdict fires where it should, and nowhere else: through the whole pipeline, on the memory engine."""

from __future__ import annotations

import dataclasses

import pytest

from loadgen.contract import LoadResult
from orchestrator.engines.memory import Behaviour
from orchestrator.engines.protocol import Placement
from orchestrator.images.plan import ROOT
from orchestrator.judge.rules import CELL_RULES, SLICE_RULES, Facts, judge
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from tests.unit.loads import changed
from tests.unit.probes.conftest import Runner


def _every_request_twice_as_slow(load: LoadResult) -> LoadResult:
    return changed(load, latency={"mean": (load.latency.mean or 0.0) * 2})


def _half_without_an_answer(load: LoadResult) -> LoadResult:
    return changed(load, unanswered={"connections": 4, "oldest_us": 1e6})


FIRES: dict[str, tuple[Behaviour, str, str]] = {
    "wrong_body": (Behaviour(errors={"wrong_body": 3}), "void", "3 answers"),
    "errors": (Behaviour(rps=1000, errors={"reset": 100}), "void", "100 reset"),
    "client_bound": (Behaviour(client_share=0.9), "bound", "90%"),
    "host_saturated": (Behaviour(foreign=0.3), "unranked", "30%"),
    "throttled": (Behaviour(throttled_s=0.2), "unranked", "stopped the server for 0.20 s"),
    "not_pinned": (
        Behaviour(server_cpus=(0, 1)),
        "unranked",
        "the server may run on CPUs 0,1, the load generator's too",
    ),
    "not_limited": (Behaviour(limits={"pids": None}), "unranked", "any number of processes"),
    "workers_restarted": (Behaviour(restarts=2), "mark", "2 of its processes ended and 2 began"),
    "littles_law": (Behaviour(load=_every_request_twice_as_slow), "mark", "8 connections"),
    "starved": (Behaviour(load=_half_without_an_answer), "unranked", "4 of 8 connections had no answer"),
    "unverified": (Behaviour(fingerprint={"parser": None}), "mark", "not to be found out: parser"),
    "emulated": (Behaviour(architecture="arm64"), "unranked", "another architecture"),
    "unstable": (Behaviour(noise=0.6), "mark", "spread"),
}


@pytest.mark.parametrize("rule", FIRES)
def test_fires(rule: str, run_smoke: Runner) -> None:
    behaviour, effect, text = FIRES[rule]
    target = "waitress" if behaviour.architecture != "x86_64" else "waitress/threads"
    _, records = run_smoke({target: behaviour})
    found = [verdict for verdict in records["waitress"].verdicts if verdict.rule == rule]
    assert [verdict.effect for verdict in found] == [effect]
    assert text in found[0].text
    assert found[0].cure
    assert rule not in [verdict.rule for verdict in records["uvicorn"].verdicts]


def test_a_quiet_run_has_no_verdict(run_smoke: Runner) -> None:
    _, records = run_smoke()
    assert [record.verdicts for record in records.values()] == [[], []]


def test_few_errors_mark_the_figure_and_keep_it(run_smoke: Runner) -> None:
    _, records = run_smoke({"waitress/threads": Behaviour(rps=10_000, errors={"reset": 2})})
    (verdict,) = records["waitress"].verdicts
    assert (verdict.rule, verdict.effect) == ("errors", "mark")


def test_steal_saturates_the_host(run_smoke: Runner) -> None:
    _, records = run_smoke({"waitress/threads": Behaviour(steal=0.2)})
    assert [verdict.rule for verdict in records["waitress"].verdicts] == ["host_saturated"]


def test_more_workers_than_cpus() -> None:
    cell = expand(load_matrix(ROOT / "matrix.yaml").matrix, "smoke").cells[0]
    crowded = Facts(dataclasses.replace(cell, workers=4), (), Placement((0, 1), (2,)), False, None)
    assert [verdict.rule for verdict in judge(crowded)] == ["oversubscribed"]
    fitting = dataclasses.replace(crowded, cell=dataclasses.replace(cell, workers=2))
    assert judge(fitting) == ()


def test_one_cpu_is_shared(run_smoke: Runner) -> None:
    run_file, records = run_smoke(cpus=(0,))
    assert run_file.placement["shared"]
    assert {verdict.rule for record in records.values() for verdict in record.verdicts} == {"shared_cpus"}


def test_a_client_bound_baseline_makes_ratios_upper_bounds(run_smoke: Runner) -> None:
    _, records = run_smoke({"uvicorn/standard": Behaviour(client_share=0.95)})
    summary = records["waitress"].summary
    assert summary is not None
    assert summary.ratio_bound == "<="


def test_both_client_bound_leaves_the_ratio_open(run_smoke: Runner) -> None:
    bound = Behaviour(client_share=0.95)
    _, records = run_smoke({"uvicorn/standard": bound, "waitress/threads": bound})
    summary = records["waitress"].summary
    assert summary is not None
    assert summary.ratio_bound == "?"


def test_every_rule_is_tested_here() -> None:
    elsewhere = {"oversubscribed", "shared_cpus", "mixed", "client_late", "overloaded", "undeclared_config"}
    assert {rule.name for rule in (*SLICE_RULES, *CELL_RULES)} == FIRES.keys() | elsewhere
