"""Which engine a run uses, and why: never silently another than was asked for."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Literal

from orchestrator.engines.docker.client import connect, cpus_of
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.local import LocalEngine, own_cpus
from orchestrator.engines.memory import MemoryEngine
from orchestrator.engines.protocol import Engine
from orchestrator.errors import EnvironmentProblem

EngineName = Literal["auto", "docker", "local", "memory"]
PING_TIMEOUT_S = 5.0


def choose_engine(name: EngineName, run: str, cache: Path) -> Engine:
    """`auto`: docker where an engine answers, else local. Raises EnvironmentProblem where `docker` is not there."""
    if name == "memory":
        return MemoryEngine(why="asked for: a dry run", cpus=cpus_of_auto())
    if name == "local":
        return LocalEngine(cache, "asked for")
    try:
        connect(PING_TIMEOUT_S).close()
    except EnvironmentProblem as error:
        if name == "docker":
            raise
        return LocalEngine(cache, error.what)
    return DockerEngine(run, "asked for" if name == "docker" else "a Docker Engine answers")


def cpus_of_auto() -> tuple[int, ...]:
    """The CPUs of the engine that `auto` would choose now: the Docker Engine's where one answers, else our own.

    They are the engine's machine's, which DOCKER_HOST may have put elsewhere.
    """
    try:
        with closing(connect(PING_TIMEOUT_S)) as client:
            return cpus_of(client)
    except EnvironmentProblem:
        return own_cpus()
