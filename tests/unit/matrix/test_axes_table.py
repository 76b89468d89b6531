"""One table has all axes: a row that is added to it alone is everywhere, and mypy sees the types of the table."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from orchestrator.evidence.model import CellPoint
from orchestrator.matrix.axes import AXES, OWN
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.models import Axes, Filter
from tests.unit.one_row_more import ROOT, copied, matrix

ROW = """    Axis(
        "backlog", "length of the queue in which connections wait", int, PositiveInt, 100, before=100, place=LOAD,
        mark=lambda value: "" if value == 100 else f"backlog{value}",
        refusal=lambda variant, value: "waitress has none" if variant.server == "waitress" and value > 100 else "",
        words=Words("backlog", name="b{}".format, title="a backlog of {}".format, rising=True),
    ),
"""
END = ")  # fmt: skip\nAXIS: Mapping"
SUITE = {
    "baseline": "uvicorn/standard",
    "apart": ["backlog"],
    "view": {"across": "backlog"},
    "axes": {
        "server": ["uvicorn/standard", "waitress", "hypercorn/asyncio"],
        "app": ["starlette", "flask"],
        "backlog": [100, 200],
    },
    "exclude": [{"server": "hypercorn/asyncio", "backlog": 200, "why": "too long for it"}],
    "schedule": {"rounds": 2, "slices": 1, "slice_s": 0.01, "warmup_s": 0, "first_warmup_s": 0},
}
IDS = [
    "uvicorn/standard·slim·wheel·py3.13·starlette·w1·c32",
    "uvicorn/standard·slim·wheel·py3.13·starlette·w1·backlog200·c32",
    "hypercorn/asyncio·slim·wheel·py3.13·starlette·w1·c32",
    "waitress/threads·slim·wheel·py3.13·flask·w1·t4·c32",
]
"""Of the cells that are measured, in no order."""


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with one row more, a suite that combines values of it, and a dry run of that suite."""
    folder = copied(tmp_path_factory.mktemp("axis"), {"orchestrator/matrix/axes.py": (END, ROW + END)})
    document = yaml.safe_load((ROOT / "matrix.yaml").read_text(encoding="utf-8"))
    document["suites"] = {"toy": SUITE, "own": {**SUITE, "baseline": "", "against": {"backlog": 100}, "apart": []}}
    (folder / "toy.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    ran = matrix(folder, "run", "toy", "--file", "toy.yaml", "--dry-run")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


def report(folder: Path, form: str) -> str:
    (run,) = (folder / "results").iterdir()
    shown = matrix(folder, "report", str(run), "--format", form)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def test_an_axis_of_the_table_alone_is_in_cells_and_records(toy: Path) -> None:
    (run,) = (toy / "results").iterdir()
    records = [json.loads(path.read_text(encoding="utf-8")) for path in (run / "cells").iterdir()]
    assert {record["id"]: record["cell"]["backlog"] for record in records} == {
        name: 200 if "backlog200" in name else 100 for name in IDS
    }


def test_an_axis_of_the_table_alone_is_left_out_with_its_reasons(toy: Path) -> None:
    listed = matrix(toy, "list", "toy", "--file", "toy.yaml").stdout
    assert "waitress has none" in listed
    assert "excluded: too long for it" in listed


def test_an_axis_of_the_table_alone_has_its_mistakes_explained(toy: Path) -> None:
    text = (toy / "toy.yaml").read_text(encoding="utf-8").replace("      backlog: 200\n", "      backlog: many\n")
    (toy / "wrong.yaml").write_text(text, encoding="utf-8")
    refused = matrix(toy, "list", "toy", "--file", "wrong.yaml")
    assert refused.returncode == 2
    assert "exclude[0].backlog: 'many' is not a whole number" in " ".join(refused.stderr.split())


def test_an_axis_of_the_table_alone_is_in_every_report(toy: Path) -> None:
    rows = {row["id"]: row for row in csv.DictReader(report(toy, "csv").splitlines())}
    assert {name: row["backlog"] for name, row in rows.items()} == {
        name: "200" if "backlog200" in name else "100" for name in IDS
    }
    page = report(toy, "markdown")
    assert "by backlog" in page
    assert re.search(r"\| *100 *\| *200 *\|", page)
    assert "a backlog of 200" in page
    assert "backlog" in report(toy, "json")


def test_an_axis_of_the_table_alone_may_be_what_ratios_refer_to(toy: Path) -> None:
    listed = matrix(toy, "list", "own", "--file", "toy.yaml")
    assert listed.returncode == 0, listed.stderr


def test_an_axis_of_the_table_alone_is_in_schemas_and_pages(toy: Path) -> None:
    written = toy / "written"
    written.mkdir()
    for page in ("matrix.md", "records.md"):
        (written / page).write_text((ROOT / "docs" / page).read_text(encoding="utf-8"), encoding="utf-8")
    assert matrix(toy, "schema", "--write", str(written)).returncode == 0
    schema = json.loads((written / "matrix.schema.json").read_text(encoding="utf-8"))
    assert all("backlog" in schema["$defs"][model]["properties"] for model in ("Axes", "Filter", "Against"))
    record = json.loads((written / "record.schema.json").read_text(encoding="utf-8"))
    assert record["$defs"]["CellPoint"]["properties"]["backlog"]["type"] == "integer"
    pages = [(written / page).read_text(encoding="utf-8") for page in ("matrix.md", "records.md")]
    assert [page.count("| `backlog` |") for page in pages] == [3, 1]


def declared(model: type) -> Iterator[tuple[str, str]]:
    """Names and types that a class declares for mypy alone."""
    package = ROOT.joinpath(*model.__module__.split(".")).with_suffix(".py")
    for found in ast.walk(ast.parse(package.read_text(encoding="utf-8"))):
        if isinstance(found, ast.ClassDef) and found.name == model.__name__:
            blocks = [part for part in found.body if isinstance(part, ast.If)]
            lines = [line for block in blocks for line in block.body if isinstance(line, ast.AnnAssign)]
            yield from ((ast.unparse(line.target), ast.unparse(line.annotation)) for line in lines)


def named(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


@pytest.mark.parametrize("model", [Cell, CellPoint])
def test_types_that_mypy_sees_are_those_of_the_table(model: type) -> None:
    table = {axis.name: named(axis.stored) for axis in AXES}
    found = dict(declared(model))
    assert found
    assert found == {name: table[name] for name in found}


def test_a_cell_declares_every_axis_in_the_order_of_the_table() -> None:
    assert [name for name, _ in declared(Cell)] == [axis.name for axis in OWN]


@pytest.mark.parametrize("model", [Axes, Filter])
def test_fields_that_mypy_sees_are_there(model: type[Axes] | type[Filter]) -> None:
    names = {name for name, _ in declared(model)}
    assert names
    assert names <= set(model.model_fields)
