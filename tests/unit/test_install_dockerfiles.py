"""The Dockerfiles of the flavours stay one text, and their final stage knows nothing of the host."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

IMAGES = Path(__file__).parents[2] / "images"
FLAVOURS = ("slim", "alpine", "debian", "slim-multistage")
STAGE = re.compile(r"^FROM (\S+)(?: AS (\S+))?\n", re.MULTILINE)


def instructions(flavour: str) -> list[str]:
    lines = (IMAGES / flavour / "Dockerfile").read_text().splitlines()
    return [line for line in lines if not line.startswith(("#", "ARG BASE=", "ARG BUILD_BASE="))]


@pytest.mark.parametrize("flavour", ["alpine", "debian"])
def test_flavours_differ_in_their_base_alone(flavour: str) -> None:
    assert instructions(flavour) == instructions("slim")


def test_multistage_is_slim_with_another_stage_for_the_server() -> None:
    slim, multistage = Counter(instructions("slim")), Counter(instructions("slim-multistage"))
    assert list(slim - multistage) == ["FROM frameworks AS server"]
    assert set(multistage - slim) == {
        "FROM ${BUILD_BASE} AS server",
        "COPY --from=frameworks /opt/venv /opt/venv",
        "COPY host /build/host",
        "LABEL appserver-matrix.stage=build",
    }


@pytest.mark.parametrize("name", [*FLAVOURS, "orchestrator"])
def test_the_final_image_is_made_of_stages_that_see_no_setting_of_the_host(name: str) -> None:
    _, *parts = STAGE.split((IMAGES / name / "Dockerfile").read_text())
    stages = {own or "final": (parent, body) for parent, own, body in zip(*[iter(parts)] * 3, strict=True)}
    parent, text = stages["final"]
    while parent != "${BASE}":
        parent, body = stages[parent]
        text += body
    assert not [word for word in ("PIP_", "PROXY", "host", "with-host") if word in text]
