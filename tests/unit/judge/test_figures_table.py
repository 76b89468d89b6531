"""Two rows add a figure, what it is and how it is taken: it is then in records, views, reports, CSV, schemas."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml

from orchestrator.evidence.model import Summary
from orchestrator.figures import EXPORTED, FIGURES, SHOWN
from orchestrator.judge.figures import ALONE, BESIDE
from tests.unit.matrix.test_axes_table import declared, named
from tests.unit.one_row_more import ROOT, copied, matrix

ROW = """    Figure(
        "best_slice_rps", "requests per second of the best slice", before=None, better="more",
        shown=(Shown("best", "best/s", "best requests/s", number=short, viewed=True),),
    ),
"""
TAKEN = '    "best_slice_rps": lambda cell: max(load.rps for load in cell.loads),\n'
CHANGES = {
    "orchestrator/figures.py": (")  # fmt: skip\nSHOWN: Mapping", f"{ROW})  # fmt: skip\nSHOWN: Mapping"),
    "orchestrator/judge/figures.py": ("}\nBESIDE: Mapping", f"{TAKEN}}}\nBESIDE: Mapping"),
}
SUITE = {
    "baseline": "uvicorn/standard",
    "view": {"show": ["rps", "best"]},
    "axes": {"server": ["uvicorn/standard", "hypercorn/asyncio"], "app": "starlette", "connections": [1, 8]},
    "schedule": {"rounds": 2, "slices": 2, "slice_s": 0.01, "warmup_s": 0, "first_warmup_s": 0},
}


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with the two rows more, and a dry run that shows the figure."""
    folder = copied(tmp_path_factory.mktemp("figure"), CHANGES)
    document = yaml.safe_load((ROOT / "matrix.yaml").read_text(encoding="utf-8"))
    (folder / "toy.yaml").write_text(yaml.safe_dump({**document, "suites": {"toy": SUITE}}), encoding="utf-8")
    ran = matrix(folder, "run", "toy", "--file", "toy.yaml", "--dry-run")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


def test_a_figure_of_the_table_alone_is_in_records_reports_and_schemas(toy: Path) -> None:
    (run,) = (toy / "results").iterdir()
    records = [json.loads(path.read_text(encoding="utf-8")) for path in (run / "cells").iterdir()]
    summaries = {record["id"]: record["judgement"]["summary"] for record in records}
    best = {own: summary["best_slice_rps"] for own, summary in summaries.items()}
    assert len(best) == 4
    assert all(summary["best_slice_rps"] >= summary["rps"]["value"] > 0 for summary in summaries.values())
    rows = csv.DictReader(matrix(toy, "report", str(run), "--format", "csv").stdout.splitlines())
    assert {row["id"]: float(row["best_slice_rps"]) for row in rows} == best
    assert "best requests/s, by connections" in matrix(toy, "report", str(run), "--format", "markdown").stdout
    written = toy / "written"
    written.mkdir()
    assert matrix(toy, "schema", "--write", str(written)).returncode == 0
    record = json.loads((written / "record.schema.json").read_text(encoding="utf-8"))
    assert "best_slice_rps" in record["$defs"]["Summary"]["properties"]


def test_every_figure_is_taken_and_no_other() -> None:
    assert sorted([*ALONE, *BESIDE]) == sorted(figure.name for figure in FIGURES)


def test_names_and_columns_of_figures_are_told_apart() -> None:
    columns = [column for figure in EXPORTED for column in figure.columns]
    assert len(columns) == len({*columns})
    assert len(SHOWN) == sum(len(figure.shown) for figure in FIGURES)


def test_types_that_mypy_sees_of_a_summary_are_those_of_the_table() -> None:
    kinds = {figure.name: named(figure.kind).replace("orchestrator.figures.", "") for figure in FIGURES}
    found = {name: kind for name, kind in declared(Summary) if name != "ratio_bound"}
    assert found
    assert found == {name: kinds[name] for name in found}
