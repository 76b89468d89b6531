"""The tables of fields in docs/ are those of the models, and every field says what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from orchestrator.errors import SpecError
from orchestrator.tools.field_tables import PAGES, described, renew_pages, renewed

DOCS = Path(__file__).parents[3] / "docs"
MODELS = [(page, model) for page, models in PAGES.items() for model in models().values()]


@pytest.mark.parametrize("page", PAGES)
def test_tables_of_a_page_are_current(page: str) -> None:
    written = (DOCS / page).read_text(encoding="utf-8")
    assert written == renew_pages(DOCS)[DOCS / page], "renew them: make schemas"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_table_of_every_model(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [name for name in PAGES[page]() if f"<!-- fields: {name} -->" not in text] == []


@pytest.mark.parametrize(("page", "model"), MODELS, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_every_field_says_what_it_holds(page: str, model: type[BaseModel]) -> None:
    assert f"\n## {model.__name__}\n" in (DOCS / page).read_text(encoding="utf-8") or model.__name__ == "Matrix"
    assert [name for name, field in model.model_fields.items() if not described(field)] == []


def test_prose_around_tables_is_left_alone_and_a_stale_table_is_replaced() -> None:
    page = "before\n<!-- fields: Cpus -->\n| old |\n<!-- end -->\nafter <!-- end -->"
    made = renewed(page, PAGES["matrix.md"]())
    assert made.startswith("before\n<!-- fields: Cpus -->\n| field | meaning |\n| --- | --- |\n| `server` | ")
    assert made.endswith("<!-- end -->\nafter <!-- end -->")
    assert "old" not in made


def test_a_model_that_there_is_not_is_told() -> None:
    with pytest.raises(SpecError, match="there is no model Cups"):
        renewed("<!-- fields: Cups -->\n<!-- end -->", PAGES["matrix.md"]())
