"""A page keeps all that is not between its comments, and gets the records' table there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.errors import SpecError
from orchestrator.evidence.store import read_run
from orchestrator.images.plan import ROOT
from orchestrator.report.embed import embed
from orchestrator.report.markdown import excerpt

PAGES = (ROOT / "README.md", ROOT / "docs" / "results.md")
REFERENCE = sorted((ROOT / "results" / "reference").glob("*/run.json"))


def test_only_the_named_place_changes() -> None:
    page = "a\n<!-- results:x -->\nold\n<!-- /results -->\nb\n<!-- results:y -->\nkept\n<!-- /results -->\n"
    assert embed(page, "x", r"new \1 $") == page.replace("old", r"new \1 $")


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("nothing here", "no place for 'x'"),
        ("<!-- results:y -->\n<!-- /results -->\n", "no place for 'x'; it has places for y"),
        ("`<!-- results:x -->` inside a line\n<!-- /results -->\n", "no place for 'x'"),
        ("<!-- results:x -->\n", "'x' has no end"),
        ("<!-- results:x -->\n<!-- results:y -->\n<!-- /results -->\n", "'x' has no end"),
        ("<!-- results:x -->\n<!-- /results -->\n" * 2, "2 places for 'x'"),
    ],
)
def test_a_page_without_the_one_place_is_refused(page: str, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        embed(page, "x", "new")


def test_nothing_is_not_embedded() -> None:
    with pytest.raises(SpecError, match="no table yet"):
        embed("<!-- results:x -->\n<!-- /results -->\n", "x", "\n")


@pytest.mark.parametrize("run_json", REFERENCE, ids=lambda path: path.parent.name)
def test_one_page_shows_each_reference_run_as_it_is(run_json: Path) -> None:
    run, records = read_run(run_json.parent)
    assert run.suite == run_json.parent.name
    pages = [page for path in PAGES if f"<!-- results:{run.suite} -->" in (page := path.read_text())]
    assert len(pages) == 1
    assert embed(pages[0], run.suite, excerpt(run, records)) == pages[0]


def test_no_place_of_a_page_is_without_its_run() -> None:
    places = [name for path in PAGES for name in re.findall(r"<!-- results:([\w-]+) -->", path.read_text())]
    assert sorted(places) == [path.parent.name for path in REFERENCE]
