"""docs/architecture.md leads to files that are there, with what it says of them, and leaves out no room."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.test_architecture import STAGES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PATHS = sorted({*re.findall(r"`((?:orchestrator|loadgen|images|docs|tests|matrix\.yaml)[\w./-]*)`", PAGE)})
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))


def rows(title: str) -> list[list[str]]:
    """The cells of each row of a section's table."""
    lines = [line for line in SECTIONS[title].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def cited() -> Iterator[tuple[str, str]]:
    """Files, with the names that the page says stand in them."""
    for _, file, names in rows("A stranger's walk"):
        yield from ((file.strip("`"), name) for name in re.findall(r"`(\w+)`", names))
    for row in rows("Where to add what"):
        for file, text in re.findall(r"`(orchestrator[\w/.]+\.py)`: a row of ([^|,]*)", " | ".join(row)):
            yield from ((file, name) for name in re.findall(r"`(\w+)`", text))


def defined(file: str) -> set[str]:
    """The names of a file's functions, classes and constants."""
    found: set[str] = set()
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(("file", "name"), sorted({*cited()}))
def test_a_name_stands_in_its_file(file: str, name: str) -> None:
    assert name in defined(file)


def test_every_room_is_told_in_its_order() -> None:
    rooms = [row[0].strip("`") for row in rows("The rooms")]
    assert [Path(room).stem for room in rooms if room != "loadgen"] == list(STAGES)
    assert "loadgen" in rooms


def test_a_stranger_finds_at_least_twelve_answers_each_in_one_file() -> None:
    walk = rows("A stranger's walk")
    assert len(walk) >= 12
    assert all(re.fullmatch(r"`[\w/.]+\.py`", file) for _, file, _ in walk)


def test_the_readme_leads_to_the_page() -> None:
    assert "(docs/architecture.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
