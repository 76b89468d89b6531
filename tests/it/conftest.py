"""What the tests against a real Docker Engine share. Without one, tests marked `docker` end before any fixture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.engines.docker.client import connect


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    found = connect()
    yield found
    found.close()
