"""The Compose file: one box for containers that the engine starts and for those that people start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.engines.protocol import Placement
from orchestrator.images.plan import base_of, build_base_of, images_of
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix, parse_matrix
from orchestrator.tools.compose import as_yaml, compose_file, service_name

ROOT = Path(__file__).parents[3]
MATRIX = load_matrix(ROOT / "matrix.yaml").matrix
PLACEMENT = Placement((0, 2), (3,))
BASES = {base_of(MATRIX, "slim", "3.13"): "stand-in:1"}


def services(cells: tuple[Cell, ...], bases: Any = None) -> dict[str, Any]:
    file = yaml.safe_load(as_yaml(compose_file(MATRIX, cells, PLACEMENT, bases)))
    assert set(file) == {"services"}
    return dict(file["services"])


def test_a_server_and_a_load_generator_for_each_image() -> None:
    cells = expand(MATRIX, "throughput").cells
    names = [service_name(spec.key) for spec in images_of(MATRIX, cells)]
    assert list(services(cells)) == [name for server in names for name in (server, f"loadgen-{server}")]


def test_the_box_of_a_server() -> None:
    found = services(expand(MATRIX, "quick", only=("waitress",)).cells, BASES)["waitress-slim-wheel-py3.13"]
    assert found["build"]["context"] == "./images"
    assert found["build"]["args"] | {"BASE": "stand-in:1", "PACKAGES": "waitress==3.0.2"} == found["build"]["args"]
    assert found["build"]["args"]["PIP_INDEX_URL"] is None
    box = {
        "network_mode": "none", "user": "1000:1000", "cap_drop": ["ALL"], "security_opt": ["no-new-privileges"],
        "read_only": True, "cpuset": "0,2", "profiles": ["waitress-slim-wheel-py3.13"],
    }  # fmt: skip
    assert found | box == found
    assert found["tmpfs"][0].startswith("/tmp:rw")
    assert found["command"][0] == "waitress-serve"
    assert "appserver-matrix.owner" not in found["labels"]
    assert "ports" not in found


def test_the_load_generator_joins_the_server() -> None:
    found = services(expand(MATRIX, "quick", only=("waitress",)).cells)["loadgen-waitress-slim-wheel-py3.13"]
    joined = "service:waitress-slim-wheel-py3.13"
    assert (found["network_mode"], found["pid"], found["cpuset"]) == (joined, joined, "3")
    assert (found["stdin_open"], found["command"], found["read_only"]) == (True, ["agent"], True)


def test_the_official_base_is_the_default() -> None:
    found = services(expand(MATRIX, "quick", only=("waitress",)).cells)
    assert found["waitress-slim-wheel-py3.13"]["build"]["args"]["BASE"] == "python:3.13-slim-trixie"
    assert "args" not in found["loadgen-waitress-slim-wheel-py3.13"]["build"]


def test_a_multi_stage_image_has_two_bases() -> None:
    cell = expand(MATRIX, "quick", only=("waitress",)).cells[0].only(flavour="slim-multistage")
    build_base = build_base_of(MATRIX, "slim-multistage", "3.13")
    assert build_base
    arguments = services((cell,), {build_base: "stand-in:cc"})[service_name(cell.image)]["build"]["args"]
    assert (arguments["BASE"], arguments["BUILD_BASE"]) == ("python:3.13-slim-trixie", "stand-in:cc")


def test_tls_needs_a_certificate_that_compose_has_not() -> None:
    cell = expand(MATRIX, "quick", only=("uvicorn/standard",)).cells[0].only(tls=True)
    found = services((cell,))["uvicorn-standard-slim-wheel-py3.13"]
    assert "--ssl-keyfile" not in found["command"]


def test_dollars_are_doubled() -> None:
    text = (ROOT / "matrix.yaml").read_text(encoding="utf-8")
    matrix = parse_matrix(text.replace("waitress-serve --host", "waitress-serve '--x=$HOME' --host")).matrix
    file = compose_file(matrix, expand(matrix, "quick", only=("waitress",)).cells, PLACEMENT)
    assert "--x=$$HOME" in file["services"]["waitress-slim-wheel-py3.13"]["command"]


@pytest.mark.parametrize("name", ["orchestrator", "loadgen"])
def test_topology_for_people(name: str) -> None:
    found = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"][name]
    assert (ROOT / found["build"]["dockerfile"]).is_file()
    assert (".:/matrix:ro" in found.get("volumes", [])) == (name == "orchestrator")
