"""All that `matrix doctor` looks at: this machine, the Docker Engine, the base images and the package index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from orchestrator.engines.docker.bases import standin_reference
from orchestrator.engines.docker.client import connect, has_image, registry_trouble
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.docker.survey import Leftover, Survey, read_survey
from orchestrator.engines.protocol import Box, EngineFacts
from orchestrator.errors import EnvironmentProblem
from orchestrator.images.host import host_settings
from orchestrator.images.plan import Base, base_of, build_base_of
from orchestrator.matrix.models import Matrix
from orchestrator.probes.placement import place
from orchestrator.tools.machine import Machine, read_machine

DOCKER_TIMEOUT_S = 20
INDEX_TIMEOUT_S = 60


@dataclass(frozen=True)
class BaseState:
    """Where the base of a flavour comes from; `trouble` is the registry's answer where it had to be asked."""

    flavour: str
    official: str
    state: Literal["official", "standin", "pullable", "to_be_made", "none"]
    trouble: str = ""


@dataclass(frozen=True)
class Environment:
    """`docker` is None with `docker_trouble` where no engine answers; `index_trouble` is "" where the index works.

    `box`: what a container of the load generator got that was to run on `client_cpus`, where that could be tried.
    """

    machine: Machine
    docker: Survey | None
    docker_trouble: str
    bases: tuple[BaseState, ...]
    index_trouble: str
    dead: tuple[Leftover, ...]
    server_cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]
    most_connections: int
    box: Box | None = None


def gather(matrix: Matrix, folder: Path) -> Environment:
    """Look at everything. Takes a second or two, and at most 80 s. Raises SpecError where `cpus` does not fit."""
    machine = read_machine(folder)
    client, trouble = _engine()
    docker = read_survey(client) if client else None
    placement = place(matrix.cpus, tuple(range(docker.cpus)) if docker else machine.cpus)
    return Environment(
        machine=machine,
        docker=docker,
        docker_trouble=trouble,
        bases=tuple(_bases(client, matrix)) if client else (),
        index_trouble=_index_trouble(),
        dead=tuple(one for one in docker.containers if is_dead(one, machine.hostname)) if docker else (),
        server_cpus=placement.server,
        client_cpus=placement.client,
        most_connections=max(max(suite.axes.connections) for suite in matrix.suites.values()),
        box=_box(client, placement.client) if client else None,
    )


def glance(matrix: Matrix, folder: Path, engine: EngineFacts, connections: int) -> Environment:
    """What bends figures and can be seen within a second: no registry and no index is asked, no container is made.

    `connections`: the most that are opened at once.
    """
    machine = read_machine(folder)
    client = _engine()[0] if engine.name == "docker" else None
    docker = read_survey(client) if client else None
    placement = place(matrix.cpus, engine.cpus)
    return Environment(
        machine=machine,
        docker=docker,
        docker_trouble="",
        bases=(),
        index_trouble="",
        dead=tuple(one for one in docker.containers if is_dead(one, machine.hostname)) if docker else (),
        server_cpus=placement.server,
        client_cpus=placement.client,
        most_connections=connections,
    )


def _box(client: Any, cpus: tuple[int, ...]) -> Box | None:
    engine = DockerEngine(f"doctor-{os.getpid()}", client=client)
    try:
        return engine.box(cpus)
    finally:
        engine.close()


def is_dead(leftover: Leftover, hostname: str) -> bool:
    """Whether the process that made a container is known to be gone: only on our own host can that be told."""
    host, _, pid = leftover.owner.rpartition(":")
    return host == hostname and pid.isdigit() and not psutil.pid_exists(int(pid))


def _engine() -> tuple[Any, str]:
    try:
        return connect(DOCKER_TIMEOUT_S), ""
    except EnvironmentProblem as error:
        return None, error.what


def _bases(client: Any, matrix: Matrix) -> Iterator[BaseState]:
    """One per base image of the suites, looked for in the order in which an engine would."""
    pythons = dict.fromkeys(
        (flavour, python)
        for suite in matrix.suites.values()
        for axes in (suite.axes, *suite.include)
        for flavour in axes.flavour
        for python in axes.python
    )
    needed: dict[str, Base] = {}
    for one in pythons:
        for base in filter(None, (base_of(matrix, *one), build_base_of(matrix, *one))):
            needed.setdefault(base.official, base)
    for base in needed.values():
        if has_image(client, base.official):
            yield BaseState(base.flavour, base.official, "official")
        elif base.standin and has_image(client, standin_reference(base)):
            yield BaseState(base.flavour, base.official, "standin")
        elif not (trouble := registry_trouble(client, base.official)):
            yield BaseState(base.flavour, base.official, "pullable")
        else:
            makeable = bool(base.standin) and _is_root() and shutil.which("apt-get") is not None
            yield BaseState(base.flavour, base.official, "to_be_made" if makeable else "none", trouble)


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _index_trouble() -> str:
    """Resolve one small package with pip's own settings (index, CA, proxies), past every cache and local folder."""
    hidden = ("PIP_FIND_LINKS", "UV_FIND_LINKS", "PYTHONPATH", "VIRTUAL_ENV")
    environment = {name: text for name, text in os.environ.items() if name not in hidden}
    with tempfile.TemporaryDirectory(prefix="appserver-matrix-") as target:
        command = (
            str(Path(sys.executable).with_name("uv")), "--no-config", "--color", "never", "pip", "install",
            "--dry-run", "--no-cache", "--no-deps", "--python", sys.executable, "--target", target, "h11",
        )  # fmt: skip
        try:
            done = subprocess.run(
                command, env=environment | host_settings().uv_environment(), capture_output=True, text=True,
                check=False, timeout=INDEX_TIMEOUT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no answer within {INDEX_TIMEOUT_S} s"
        except EnvironmentProblem as error:
            return error.what
        except OSError as error:
            return f"uv cannot be started: {error.strerror}"
    return "" if done.returncode == 0 else _innermost(done.stderr)


def _innermost(stderr: str) -> str:
    """The last cause that uv names: what it was doing stands above it."""
    lines = [line.strip(" │├╰─▶×\t") for line in stderr.splitlines() if line.strip()]
    return lines[-1].removeprefix("cause: ") if lines else "failed without a word"
