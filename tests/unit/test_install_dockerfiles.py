"""The Dockerfiles of the flavours stay one text, and their final stage knows nothing of the host."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

IMAGES = Path(__file__).parents[2] / "images"
FLAVOURS = ("slim", "alpine", "debian", "slim-multistage")
FINAL_STAGE = "\nFROM ${BASE}\n"


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
def test_the_final_stage_sees_no_setting_of_the_host(name: str) -> None:
    text = (IMAGES / name / "Dockerfile").read_text()
    assert text.count(FINAL_STAGE) == 1
    final = text.split(FINAL_STAGE)[1]
    assert not [word for word in ("PIP_", "PROXY", "host", "with-host") if word in final]
