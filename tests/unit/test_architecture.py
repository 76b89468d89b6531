"""One-way flow: each stage imports only itself and the stages to its left; one package alone knows the Docker SDK."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STAGES = (
    "errors", "stored", "layout", "figures", "matrix", "images", "engines", "probes", "evidence", "judge", "report",
    "pipeline", "tools", "cli",
)  # fmt: skip
MODULES = sorted(path for package in ("orchestrator", "loadgen") for path in (ROOT / package).rglob("*.py"))


CONTRACT = "loadgen.contract"
CONTRACT_RESTS_ON = {*sys.stdlib_module_names, "msgspec"}


def imported(source: str, module: str) -> Iterator[str]:
    """The full names of all that a module's source imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def trespasses(source: str, module: str) -> list[str]:
    """The imports of `module` that the one-way flow forbids."""
    return [name for name in imported(source, module) if not _allowed(module, name)]


def _allowed(module: str, name: str) -> bool:
    here, there = module.split("."), name.split(".")
    if there[0] == "docker":
        return module.startswith("orchestrator.engines.docker.")
    if module == CONTRACT:
        return there[0] in CONTRACT_RESTS_ON
    if there[0] not in ("orchestrator", "loadgen") or name == CONTRACT or name.startswith(f"{CONTRACT}."):
        return True
    if here[0] != there[0]:
        return False
    return here[0] == "loadgen" or STAGES.index(there[1]) <= STAGES.index(here[1])


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_module_imports_only_to_its_left(path: Path) -> None:
    module = _name(path)
    if module != "orchestrator.__init__":
        assert trespasses(path.read_text(encoding="utf-8"), module) == []


def test_package_itself_imports_nothing() -> None:
    source = (ROOT / "orchestrator" / "__init__.py").read_text(encoding="utf-8")
    assert list(imported(source, "orchestrator.__init__")) == []


def test_every_stage_is_known() -> None:
    found = {path.relative_to(ROOT / "orchestrator").parts[0].removesuffix(".py") for path in MODULES
             if path.is_relative_to(ROOT / "orchestrator")}  # fmt: skip
    assert found - {"__init__"} <= set(STAGES)


@pytest.mark.parametrize(
    ("module", "source", "forbidden"),
    [
        ("orchestrator.matrix.models", "import orchestrator.cli.app", ["orchestrator.cli.app"]),
        (
            "orchestrator.probes.load.measure",
            "def f():\n    from orchestrator import evidence",
            ["orchestrator.evidence"],
        ),
        ("orchestrator.matrix.models", "from ..probes import checks", ["orchestrator.probes.checks"]),
        ("orchestrator.tools.doctor", "from docker.errors import APIError", ["docker.errors.APIError"]),
        ("orchestrator.engines.agent", "import loadgen.spec", ["loadgen.spec"]),
        ("orchestrator.engines.agent", "from loadgen import contract, spec", ["loadgen.spec"]),
        ("orchestrator.engines.agent", "from loadgen.contract import LoadSpec", []),
        ("loadgen.contract", "import msgspec\nfrom typing import Any", []),
        ("loadgen.contract", "import h11\nfrom loadgen.errors import SpecError", ["h11", "loadgen.errors.SpecError"]),
        ("loadgen.spec", "if True:\n    from orchestrator.errors import Place", ["orchestrator.errors.Place"]),
        ("orchestrator.engines.docker.client", "import docker\nfrom orchestrator.errors import Place", []),
        ("orchestrator.matrix.expand", "from orchestrator.matrix.cell import Cell", []),
    ],
)
def test_trespass_is_seen(module: str, source: str, forbidden: list[str]) -> None:
    assert trespasses(source, module) == forbidden
