"""The Compose files with a real Compose: docker-compose 1.29 or v2, whichever is here."""

from __future__ import annotations

import json
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engines.docker.bases import find_base
from orchestrator.engines.docker.client import connect
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.protocol import Placement
from orchestrator.images.plan import base_of
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.tools.compose import as_yaml, compose_file, service_name
from orchestrator.tools.compose_setting import lay_ca

ROOT = Path(__file__).parents[2]
MATRIX = load_matrix(ROOT / "matrix.yaml").matrix
PLACEMENT = Placement((0,), (0,), shared=True)
SPEC = {"url": "http://127.0.0.1:8000/items/42", "connections": 4, "duration_s": 0.5, "watch_pid": 1}


def _compose() -> list[str]:
    """`docker compose` where the plugin is here, else docker-compose, else nothing."""
    if shutil.which("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0:
        return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else []


COMPOSE = _compose()
pytestmark = pytest.mark.skipif(not COMPOSE, reason="there is no Compose on this machine")


def compose(*arguments: str, text: str = "") -> str:
    command = [*COMPOSE, "--project-directory", str(ROOT), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=900, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_every_service_of_the_matrix_is_valid(tmp_path: Path) -> None:
    file = compose_file(MATRIX, expand(MATRIX, "throughput").cells, PLACEMENT)
    (tmp_path / "all.yaml").write_text(as_yaml(file), encoding="utf-8")
    profiles = [word for name in file["services"] if not name.startswith("loadgen-") for word in ("--profile", name)]
    shown = compose("-f", str(tmp_path / "all.yaml"), *profiles, "config", "--services").split()
    assert set(shown) == set(file["services"])


def test_topology_for_people_is_valid() -> None:
    assert set(compose("-f", "compose.yaml", "config", "--services").split()) == {"orchestrator", "loadgen"}


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """A server that Compose built and started: its project, its service and the arguments of its file."""
    lay_ca()
    base = base_of(MATRIX, "slim", "3.13")
    engine = DockerEngine("it-compose")
    cells = expand(MATRIX, "quick", only=("waitress",)).cells
    cells = tuple(cell for cell in cells if cell.variant.server == "waitress")
    file = compose_file(MATRIX, cells, PLACEMENT, {base: find_base(engine.store, base, print).reference})
    (tmp_path / "servers.yaml").write_text(as_yaml(file), encoding="utf-8")
    name, project = service_name(cells[0].image), f"it{uuid.uuid4().hex[:8]}"
    arguments = ["-p", project, "-f", str(tmp_path / "servers.yaml"), "--profile", name]
    compose(*arguments, "build", name, f"loadgen-{name}")
    try:
        compose(*arguments, "up", "-d", name)
        yield project, name, arguments
    finally:
        compose(*arguments, "down", "-v")


@pytest.mark.docker
def test_a_server_started_by_hand_is_boxed_in_and_takes_load(started: tuple[str, str, list[str]]) -> None:
    project, name, arguments = started
    (container,) = connect().containers.list(filters={"label": f"com.docker.compose.project={project}"})
    host = container.attrs["HostConfig"]
    assert (host["NetworkMode"], host["CapDrop"], host["ReadonlyRootfs"]) == ("none", ["ALL"], True)
    assert (host["PidsLimit"], host["CpusetCpus"], host["SecurityOpt"]) == (1024, "0", ["no-new-privileges"])
    assert container.attrs["Config"]["User"] == "1000:1000"
    wait = {"op": "wait", "request": {"url": SPEC["url"]}, "expect": {"status": 200}, "deadline_s": 10}
    lines = "".join(json.dumps(line) + "\n" for line in (wait, {"op": "load", "spec": SPEC}))
    answers = compose(*arguments, "run", "--rm", "-T", f"loadgen-{name}", text=lines).splitlines()
    ready, load = (json.loads(line) for line in answers if line.startswith("{"))
    assert ready["ok"], ready
    assert load["result"]["requests"] > 0
    assert sum(load["result"]["errors"].values()) == 0
    assert load["result"]["server"]["cpu_s"] > 0
