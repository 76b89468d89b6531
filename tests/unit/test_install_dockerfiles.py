"""One Dockerfile serves the flavours, and what is left of it knows nothing of the host."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.images.plan import ROOT, image_of
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.matrix.models import SystemPackages

IMAGES = Path(__file__).parents[2] / "images"
FOLDERS = ("server", "server-multistage", "loadgen", "orchestrator")
MATRIX = load_matrix(ROOT / "matrix.yaml").matrix
STAGE = re.compile(r"^FROM (\S+)(?: AS (\S+))?\n", re.MULTILINE)


def instructions(folder: str) -> list[str]:
    lines = (IMAGES / folder / "Dockerfile").read_text().splitlines()
    return [line for line in lines if not line.startswith(("#", "ARG BASE=", "ARG BUILD_BASE="))]


@pytest.mark.parametrize("flavour", MATRIX.flavours)
def test_a_flavour_is_built_by_a_dockerfile_that_is_there_and_has_its_target(flavour: str) -> None:
    cell = expand(MATRIX, "quick", only=("mod-wsgi", "waitress")).cells[0].only(flavour=flavour)
    spec = image_of(MATRIX, cell)
    assert spec.dockerfile == f"{'server-multistage' if spec.build_base else 'server'}/Dockerfile"
    stages = {name for _, name in STAGE.findall((IMAGES / spec.dockerfile).read_text())}
    assert {"shared", "server", ""} <= stages


def test_system_packages_to_run_with_are_the_last_stage_alone() -> None:
    cell = expand(MATRIX, "quick", only=("waitress",)).cells[0]
    spec = image_of(MATRIX, cell)
    assert spec.target == "server"
    assert replace(spec, system=SystemPackages(run=("libuv1",))).target == ""


def test_multistage_is_the_same_with_another_stage_for_the_install() -> None:
    one, multistage = Counter(instructions("server")), Counter(instructions("server-multistage"))
    assert list(one - multistage) == ["FROM frameworks AS install"]
    assert set(multistage - one) == {
        "FROM ${BUILD_BASE} AS install",
        "COPY --from=frameworks /opt/venv /opt/venv",
        "COPY --from=frameworks /build /build",
        "LABEL appserver-matrix.stage=build",
    }


@pytest.mark.parametrize("name", FOLDERS)
def test_the_final_image_is_made_of_stages_that_see_no_setting_of_the_host(name: str) -> None:
    _, *parts = STAGE.split((IMAGES / name / "Dockerfile").read_text())
    stages = {own or "final": (parent, body) for parent, own, body in zip(*[iter(parts)] * 3, strict=True)}
    parent, text = stages["final"]
    while parent != "${BASE}":
        parent, body = stages[parent]
        text = body + text
    assert not [word for word in ("PIP_", "PROXY", "host", "with-host") if word in text]
