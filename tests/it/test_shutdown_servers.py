"""The probes of start and end on small servers of known behaviour, as processes of the local engine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.local import LocalEngine
from orchestrator.engines.protocol import Placement
from orchestrator.images.plan import ROOT, Base, BaseFacts, BuiltImage, ImageSpec
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.loading import load_matrix
from orchestrator.matrix.models import Declares, Schedule, SystemPackages
from orchestrator.matrix.resolved import Variant
from orchestrator.probes.deploy.measure import AFTER_S, RATE, ROLLING_S, probe_deploy
from orchestrator.probes.deploy.record import DeploySection
from orchestrator.probes.launching import Plan
from orchestrator.probes.results import Failure
from orchestrator.probes.shutdown.measure import probe_shutdown
from orchestrator.probes.shutdown.record import ShutdownSection
from orchestrator.probes.startup.measure import probe_startup
from orchestrator.probes.startup.record import StartupSection

PLAIN = ROOT / "tests" / "servers" / "plain.py"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LocalEngine]:
    made = LocalEngine(tmp_path)
    try:
        yield made
    finally:
        made.close()


def plan_of(way: str, engine: LocalEngine, **schedule: Any) -> tuple[Plan, Cell, BuiltImage]:
    """A cell whose server is tests/servers/plain.py, in this interpreter's environment."""
    variant = Variant(
        server="plain", variant=way, image="plain", protocol="wsgi", install=("plain==1",), sdist_only=False,
        compiled=(), run=f"python {PLAIN} {way} --host {{host}} --port {{port}}", options="", tls="", env={},
        supports=frozenset(), system={}, declares=Declares(), note="",
    )  # fmt: skip
    cell = Cell(variant, "slim", "wheel", "3.13", "raw-wsgi", "item", 1, None, False, 1)
    base = Base("slim", "3.13", "none", "")
    facts = BaseFacts("none", "none", "", "")
    spec = ImageSpec(cell.image, base, "", ("plain==1",), (), SystemPackages())
    image = BuiltImage(spec, sys.prefix, "none", facts, "", {"outcome": "pure"})
    cpus = engine.facts.cpus
    placement = Placement(cpus[:1], cpus[-1:], shared=len(cpus) == 1)
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    return Plan(matrix, (cell,), {cell.image: image}, Schedule(**schedule), placement, 1), cell, image


def probed(way: str, engine: LocalEngine, **schedule: Any) -> ShutdownSection:
    plan, cell, image = plan_of(way, engine, **schedule)
    section = probe_shutdown(engine, plan, cell, image)
    assert not isinstance(section, Failure), section
    return ShutdownSection.model_validate(section)


@pytest.mark.parametrize(
    ("way", "outcome", "code", "kept", "new"),
    [
        ("answers", "answered", "0", "closed", "refused"),
        ("cuts", "cut", "3", "closed", "refused"),
        ("resets", "reset", "0", "reset", "refused"),
        ("half", "cut", "0", "closed", "refused"),
        ("ignores", "ignored", "killed", "answered", "answered"),
    ],
)
def test_a_known_end_is_seen_as_it_is(
    engine: LocalEngine, way: str, outcome: str, code: str, kept: str, new: str
) -> None:
    case = probed(way, engine, rounds=2, kill_after_s=3).cases[0]
    assert (case.outcome, case.exit_codes, case.kept, case.new) == (outcome, {code: 2}, {kept: 2}, {new: 2})
    for ending in case.repetitions:
        assert (ending.exit_ms is None) == (way == "ignores")
        assert (ending.slow.bytes > 0) == (way in ("answers", "half", "ignores"))
        assert ending.received_ms is None or -400 < ending.received_ms < 0


def test_nothing_is_left_behind(engine: LocalEngine) -> None:
    probed("ignores", engine, rounds=1, kill_after_s=2)
    left = [path.parent.name for path in Path("/proc").glob("[0-9]*/cmdline") if str(PLAIN) in _text(path)]
    assert left == []


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def test_a_server_that_does_not_start_says_why(engine: LocalEngine) -> None:
    plan, cell, image = plan_of("--bogus", engine, rounds=1)
    failure = probe_shutdown(engine, plan, cell, image)
    assert isinstance(failure, Failure)
    assert failure.stage == "start"
    assert "error" in failure.reason


def test_a_start_is_timed_from_its_exec(engine: LocalEngine) -> None:
    plan, cell, image = plan_of("answers", engine, rounds=2)
    section = probe_startup(engine, plan, cell, image)
    assert not isinstance(section, Failure), section
    found = StartupSection.model_validate(section)
    assert found.processes.median == 1
    for start in found.starts:
        assert 0 < start.accepted_ms <= start.answered_ms
        assert start.cpu_ms > 0


@pytest.mark.parametrize(
    ("way", "disturbance", "loses"),
    [("answers", "rolling", False), ("cuts", "late", True)],
)
def test_a_deploy_loses_what_it_must(engine: LocalEngine, way: str, disturbance: str, loses: bool) -> None:
    plan, cell, image = plan_of(way, engine, rounds=1, disturb=disturbance)
    section = probe_deploy(engine, plan, cell, image)
    assert not isinstance(section, Failure), section
    (case,) = DeploySection.model_validate(section).cases
    (found,) = case.repetitions
    assert found.requests == RATE * (ROLLING_S + AFTER_S)
    assert bool(found.lost) == loses, found
    if loses:
        assert set(found.lost) <= {"refused", "closed_early", "reset"}
        assert found.lost["refused"] > 10  # of about 25 that are due before traffic moves


def test_a_server_without_workers_or_reload_is_not_disturbed_so(engine: LocalEngine) -> None:
    plan, cell, image = plan_of("answers", engine, rounds=1, disturb=["reload", "kill"])
    section = probe_deploy(engine, plan, cell, image)
    assert not isinstance(section, Failure), section
    assert all(case.unable and not case.repetitions for case in DeploySection.model_validate(section).cases)
