"""What pages, comments and docstrings name is there: files, sections of pages, verbs of make, commands of `matrix`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from orchestrator.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = [
    path
    for folder in ("bench", "images", "loadgen", "orchestrator")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".sh") or path.name == "Dockerfile"
]
TEXTS = [*PAGES, *SOURCES, ROOT / "Makefile", ROOT / "compose.yaml", ROOT / "matrix.yaml", ROOT / "pyproject.toml"]
FOLDERS = "bench|docs|images|loadgen|orchestrator|requirements|tests"
FILE = re.compile(rf"(?<![\w./$-])((?:{FOLDERS})/[\w./-]*\w\.(?:in|json|md|py|sh|svg|txt|yaml))\b")
MADE = re.compile(r"(?:`|^    \$? ?)make ([a-z][a-z-]*)", re.M)
COMMAND = re.compile(r"(?:`|^    |`\.venv/bin/)matrix ([a-z]+)", re.M)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def named(texts: list[Path], pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """What matches, with a page or source in which it stands."""
    found = {what: path for path in texts for what in pattern.findall(path.read_text(encoding="utf-8"))}
    return sorted((what, str(path.relative_to(ROOT))) for what, path in found.items())


def commands() -> set[str]:
    """The commands of `matrix`."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    return set(group.commands)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def links() -> Iterator[tuple[str, str, str]]:
    for page in PAGES:
        for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
            yield str(page.relative_to(ROOT)), target, anchor


@pytest.mark.parametrize(("file", "where"), named(TEXTS, FILE))
def test_a_file_that_is_named_is_there(file: str, where: str) -> None:
    assert (ROOT / file).is_file(), where


@pytest.mark.parametrize(("page", "target", "anchor"), sorted(set(links())))
def test_a_link_leads_to_a_page_and_its_section(page: str, target: str, anchor: str) -> None:
    there = (ROOT / page).parent / target if target else ROOT / page
    assert there.exists()
    assert not anchor or anchor in anchors(there)


@pytest.mark.parametrize(("verb", "where"), named(TEXTS, MADE))
def test_a_verb_of_make_is_there(verb: str, where: str) -> None:
    assert re.search(rf"^{verb}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M), where


@pytest.mark.parametrize(("command", "where"), named(TEXTS, COMMAND))
def test_a_command_is_there(command: str, where: str) -> None:
    assert command in commands(), where


@pytest.mark.parametrize("command", sorted(commands() - {"run", "schema"}))
def test_the_readme_tells_of_each_command(command: str) -> None:
    """By its verb of make, or by itself; `run` is `make matrix`, `schema` is for those who change the program."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"matrix {command}" in readme or f"make {command}" in readme
