"""Tests marked `docker` need a Docker Engine: without one they are skipped, and fail where REQUIRE_DOCKER is set."""

from __future__ import annotations

import os
from functools import cache

import pytest

from orchestrator.engines.docker.client import connect
from orchestrator.errors import EnvironmentProblem


@cache
def docker_missing() -> str:
    """Why there is no Docker, or nothing."""
    try:
        connect(5).close()
    except EnvironmentProblem as error:
        return error.what
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not item.get_closest_marker("docker") or not (reason := docker_missing()):
        return
    if os.environ.get("REQUIRE_DOCKER"):
        pytest.fail(f"REQUIRE_DOCKER is set, and {reason}")
    pytest.skip(reason)
