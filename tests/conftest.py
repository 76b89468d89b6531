"""Tests marked `docker` need a Docker Engine: without one they are skipped, and fail where REQUIRE_DOCKER is set.

`make test` runs tests in several processes. Those under tests/it run one after the other in one of them: they share
images and this machine's CPUs, which they pin, and what one measures another would disturb.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from orchestrator.engines.docker.client import connect
from orchestrator.errors import EnvironmentProblem

INTEGRATION = "tests/it/"


@cache
def docker_missing() -> str:
    """Why there is no Docker, or nothing."""
    try:
        connect(5).close()
    except EnvironmentProblem as error:
        return error.what
    return ""


class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Hands out the tests of one file together, and all of tests/it as if they were of one."""

    def _split_scope(self, nodeid: str) -> str:
        return INTEGRATION if nodeid.startswith(INTEGRATION) else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    return Scheduling(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not item.get_closest_marker("docker") or not (reason := docker_missing()):
        return
    if os.environ.get("REQUIRE_DOCKER"):
        pytest.fail(f"REQUIRE_DOCKER is set, and {reason}")
    pytest.skip(reason)
