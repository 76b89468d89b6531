"""An engine that discards pinning and limits without a word, as rootless ones do: rows are unranked and say why."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import UNSET

from orchestrator.engines.docker.client import connect
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.docker.options import LIMITS
from orchestrator.evidence.model import VerdictRecord
from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.pipeline import Order, run

pytestmark = pytest.mark.docker
SOCKET = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
RULES = ("not_pinned", "not_limited")


@pytest.fixture
def engine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DockerEngine]:  # fmt: skip
    """The real engine, behind a socket that discards the fields given as parameter."""
    if not SOCKET.startswith("unix://"):
        pytest.skip("the engine has no socket in the file system")
    listen = tmp_path / "docker.sock"
    proxy = ROOT / "tests" / "servers" / "discarding.py"
    command = [sys.executable, str(proxy), str(listen), SOCKET.removeprefix("unix://"), *request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        monkeypatch.setenv("DOCKER_HOST", f"unix://{listen}")
        made = DockerEngine("test-discarding", client=connect())
        try:
            yield made
        finally:
            made.close()
            process.kill()


def verdicts(engine: DockerEngine, folder: Path) -> list[VerdictRecord]:
    """Of the two servers of suite `smoke` after one round."""
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    suite = matrix.suites["smoke"]
    short = suite.model_copy(update={"schedule": suite.schedule.model_copy(update={"rounds": 1})})
    matrix = matrix.model_copy(update={"suites": {**matrix.suites, "smoke": short}})
    _, made = run(Order(matrix, expand(matrix, "smoke"), folder), engine, lambda _: None)
    assert [record.outcome for record in made] == ["measured", "measured"]
    return [verdict for record in made for verdict in record.verdicts if verdict.rule in RULES]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="with one CPU there is nothing to discard")
@pytest.mark.parametrize("engine", [["CpusetCpus"]], indirect=True)
def test_pinning_that_is_discarded_is_seen(engine: DockerEngine, tmp_path: Path) -> None:
    found = verdicts(engine, tmp_path / "run")
    assert [(one.rule, one.effect) for one in found] == [("not_pinned", "unranked")] * 2
    assert all(one.text.startswith("the server may run on CPUs 0,1") for one in found)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="with one CPU there is nothing to discard")
@pytest.mark.parametrize("engine", [["CpusetCpus", "PidsLimit"]], indirect=True)
def test_the_doctor_tries_it_in_a_container(engine: DockerEngine) -> None:
    engine.prepare(lambda _: None)
    box = engine.box(engine.facts.cpus[-1:])
    assert box is not None
    assert box.cpus == engine.facts.cpus
    assert box.limits.pids in (None, UNSET)
    assert box.limits.memory_bytes in (UNSET, LIMITS["client"].memory_bytes)


@pytest.mark.parametrize("engine", [["Memory", "MemorySwap"], ["PidsLimit"]], indirect=True)
def test_limits_that_are_discarded_are_seen(engine: DockerEngine, tmp_path: Path) -> None:
    found = verdicts(engine, tmp_path / "run")
    assert [(one.rule, one.effect) for one in found] == [("not_limited", "unranked")] * 2
    assert all(one.text.startswith("the server may have any number of ") for one in found)


@pytest.mark.parametrize("engine", [[]], indirect=True)
def test_an_engine_that_does_as_asked_has_no_verdict(engine: DockerEngine, tmp_path: Path) -> None:
    assert verdicts(engine, tmp_path / "run") == []
