"""A page keeps all that is not between its comments, and gets the records' table there."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import SpecError
from orchestrator.images.plan import ROOT
from orchestrator.records.store import read_run
from orchestrator.report.embed import embed
from orchestrator.report.markdown import excerpt

REFERENCE = sorted((ROOT / "results" / "reference").glob("*/run.json"))


def test_only_the_named_place_changes() -> None:
    page = "a\n<!-- results:x -->\nold\n<!-- /results -->\nb\n<!-- results:y -->\nkept\n<!-- /results -->\n"
    assert embed(page, "x", r"new \1 $") == page.replace("old", r"new \1 $")


def test_a_page_without_the_place_is_refused() -> None:
    with pytest.raises(SpecError, match="no place for 'x'"):
        embed("nothing here", "x", "new")


@pytest.mark.parametrize("run_json", REFERENCE, ids=lambda path: path.parent.name)
def test_the_readme_shows_the_reference_as_it_is(run_json: Path) -> None:
    run, records = read_run(run_json.parent)
    page = (ROOT / "README.md").read_text()
    if f"<!-- results:{run.suite} -->" in page:
        assert embed(page, run.suite, excerpt(run, records)) == page
