"""The whole program on real servers: suite `smoke` on both engines, and Ctrl-C in the middle of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestrator.engines.docker.client import connect
from orchestrator.engines.docker.options import LABEL_RUN
from orchestrator.evidence.store import latest_run, read_run
from orchestrator.images.plan import ROOT

ENGINES = [pytest.param("docker", marks=pytest.mark.docker), "local"]
MATRIX = [str(Path(sys.executable).with_name("matrix"))]


def run_smoke(engine: str, results: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [*MATRIX, "run", "smoke", "--engine", engine, "--results", str(results), *more]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1200)


def containers(run: str) -> list[Any]:
    return list(connect().containers.list(all=True, filters={"label": f"{LABEL_RUN}={run}"}))


@pytest.mark.parametrize("engine", ENGINES)
def test_smoke(engine: str, tmp_path: Path) -> None:
    done = run_smoke(engine, tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"engine: {engine}" in done.stderr
    assert "uvicorn/standard" in done.stdout
    folder = latest_run(tmp_path)
    run_file, records = read_run(folder)
    assert run_file.complete
    assert [record.outcome for record in records] == ["measured", "measured"]
    for record in records:
        assert record.summary is not None
        assert record.summary.errors == 0
        assert record.summary.requests > 100
        assert not [v for v in record.verdicts if v.rule in ("undeclared_config", "wrong_body", "errors", "mixed")]
        assert record.image is not None
        assert record.cell.server in record.image.versions
        assert all(len(round_.slices) == run_file.schedule["slices"] for round_ in record.rounds)
        assert record.summary.cpu_us_per_request is not None or sys.platform != "linux"
    uvicorn = next(record for record in records if record.cell.server == "uvicorn")
    assert (uvicorn.rounds[0].fingerprint or {})["loop"] == "uvloop.Loop"
    if engine == "docker":
        assert containers(folder.name) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_second_run_builds_nothing(engine: str, tmp_path: Path) -> None:
    run_smoke(engine, tmp_path, "--only", "waitress*")
    again = run_smoke(engine, tmp_path, "--only", "waitress*")
    assert again.returncode == 0, again.stderr
    assert "building" not in again.stderr
    assert "installing" not in again.stderr


@pytest.fixture
def interrupted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A run that has its servers up, in a group of its own as a terminal would give it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # inherited by the background jobs of a script
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [*MATRIX, "run", "smoke", "--engine", request.param, "--results", str(tmp_path)]
    process = subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("round 1"):
            break
    yield process, tmp_path
    if process.poll() is None:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("interrupted", ENGINES, indirect=True)
def test_an_interrupt_leaves_nothing(interrupted: tuple[subprocess.Popen[str], Path], number: int) -> None:
    process, results = interrupted
    before = {child.pid for child in psutil.Process(process.pid).children(recursive=True)}
    os.killpg(process.pid, number)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in words
    assert not [pid for pid in before if psutil.pid_exists(pid)]
    run = latest_run(results)
    assert not json.loads((run / "run.json").read_text())["complete"]
    if json.loads((run / "run.json").read_text())["engine"]["name"] == "docker":
        assert containers(run.name) == []


@pytest.mark.docker
@pytest.mark.parametrize("interrupted", [pytest.param("docker")], indirect=True)
def test_server_containers_are_boxed_in(interrupted: tuple[subprocess.Popen[str], Path]) -> None:
    process, results = interrupted
    found = containers(latest_run(results).name)
    assert found
    for container in found:
        host, config = container.attrs["HostConfig"], container.attrs["Config"]
        assert host["NetworkMode"] == "none" or host["NetworkMode"].startswith("container:")
        assert host["CapDrop"] == ["ALL"]
        assert "no-new-privileges" in host["SecurityOpt"][0]
        assert host["ReadonlyRootfs"]
        assert not host["Privileged"]
        assert config["User"] == "1000:1000"
        assert host["Memory"] > 0
        assert host["PidsLimit"] > 0
    servers = {c.attrs["HostConfig"]["CpusetCpus"] for c in found if c.labels["appserver-matrix.kind"] == "server"}
    clients = {c.attrs["HostConfig"]["CpusetCpus"] for c in found if c.labels["appserver-matrix.kind"] == "agent"}
    assert not servers & clients or connect().info()["NCPU"] == 1
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
