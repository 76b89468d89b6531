"""docs/matrix.md and docs/matrix.schema.json say what the models say, and their examples work."""

from __future__ import annotations

import json
import os
import re
import textwrap
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from orchestrator.matrix import models
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import json_schema, parse_matrix
from orchestrator.matrix.resolved import PLACEHOLDERS

ROOT = Path(__file__).parents[3]
MATRIX = (ROOT / "matrix.yaml").read_text(encoding="utf-8")
DOCS = (ROOT / "docs" / "matrix.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", DOCS, re.M | re.S))
EXAMPLE = re.findall(r"```yaml\n(.*?)```", DOCS, re.S)[-1]
MODELS = [
    model for model in vars(models).values()
    if isinstance(model, type) and issubclass(model, models.Model) and model not in (models.Model, models.Entry)
]  # fmt: skip
TITLES = {"Matrix": "Top level"}


def _rows(title: str) -> set[str]:
    return set(re.findall(r"^\| `\{?(\w+)\}?` \|", SECTIONS[title], re.M))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model.__name__))
def test_every_field_is_described_and_no_other(model: type[models.Model]) -> None:
    fields = set(model.model_fields)
    if model is models.VariantEntry:
        fields -= set(models.Entry.model_fields)
    assert _rows(TITLES.get(model.__name__, model.__name__)) == fields


def test_every_placeholder_is_described() -> None:
    assert _rows("Placeholders") == set(PLACEHOLDERS)


@pytest.mark.parametrize("model", [models.Axes, models.Schedule], ids=lambda model: str(model.__name__))
def test_defaults_are_told_right(model: type[models.Model]) -> None:
    for name, text in re.findall(r"^\| `(\w+)` \| (.+?) \|", SECTIONS[model.__name__], re.M):
        value: Any = yaml.safe_load(text.strip("`"))
        default = model.model_fields[name].default
        assert default == ((value,) if isinstance(default, tuple) else value), name


def test_committed_schema_is_current() -> None:
    path, current = ROOT / "docs" / "matrix.schema.json", json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(current, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == current, "UPDATE_GOLDEN=1 writes it anew"


def test_schema_takes_the_matrix_and_refuses_a_broken_one() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    data = yaml.safe_load(MATRIX)
    validator.validate(data)
    data["servers"]["uvicorn"]["protocl"] = "asgi"
    assert [error.validator for error in validator.iter_errors(data)] == ["additionalProperties"]


@pytest.mark.parametrize("file", ["README.md", "docs/matrix.md"])
def test_a_server_is_added_by_one_entry_in_one_file(file: str) -> None:
    """The three steps of both texts: their entry goes into matrix.yaml, and its cells are there."""
    _, steps = (ROOT / file).read_text(encoding="utf-8").split("## Add a server in three steps\n", 1)
    entry = textwrap.dedent(re.findall(r"```yaml\n(.*?)```", steps, re.S)[0])
    assert len(entry.splitlines()) <= 12
    matrix = parse_matrix(MATRIX.replace("\nservers:\n", f"\nservers:\n{textwrap.indent(entry, '  ')}\n", 1)).matrix
    (name,) = yaml.safe_load(entry)
    (variant,) = matrix.servers[name].variants
    cells = expand(matrix, "throughput", only=(name,)).cells
    own = [cell.id for cell in cells if cell.variant.server == name]
    assert own == [f"{name}/{variant}·slim·wheel·py3.13·starlette·w1·c{count}" for count in (1, 8, 32, 128)]
    assert {cell.variant.name for cell in cells} == {f"{name}/{variant}", "uvicorn/standard"}


def test_example_of_a_suite_has_cells() -> None:
    matrix = parse_matrix(f"{MATRIX}\n{EXAMPLE}").matrix
    selection = expand(matrix, "second-worker")
    assert {cell.tls for cell in selection.cells} == {False, True}
    assert {cell.workers for cell in selection.cells} == {1, 2}
