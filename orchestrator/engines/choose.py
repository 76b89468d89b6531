"""Which engine a run uses, and why: never silently another than was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from orchestrator.engines.docker import DockerEngine, connect
from orchestrator.engines.local import LocalEngine
from orchestrator.engines.memory import MemoryEngine
from orchestrator.engines.protocol import Engine
from orchestrator.errors import EnvironmentProblem

EngineName = Literal["auto", "docker", "local", "memory"]
PING_TIMEOUT_S = 5.0


def choose_engine(name: EngineName, run: str, cache: Path) -> Engine:
    """`auto`: docker where an engine answers, else local. Raises EnvironmentProblem where `docker` is not there."""
    if name == "memory":
        return MemoryEngine(why="asked for: a dry run")
    if name == "local":
        return LocalEngine(cache, "asked for")
    try:
        connect(PING_TIMEOUT_S).close()
    except EnvironmentProblem as error:
        if name == "docker":
            raise
        return LocalEngine(cache, error.what)
    return DockerEngine(run, "asked for" if name == "docker" else "a Docker Engine answers")
