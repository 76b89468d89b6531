"""docs/verdicts.md and docs/records.md say what the code says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from loadgen.openloop import LATE_SHARE
from orchestrator.evidence.model import Outcome, Record, RunFile
from orchestrator.images.plan import ROOT
from orchestrator.judge import rules
from orchestrator.stored import Stored
from orchestrator.tools.field_tables import models_of

DOCS = Path(__file__).parents[3] / "docs"
RULES = (*rules.SLICE_RULES, *rules.CELL_RULES)
LIMITS = {
    "client_bound": (rules.CLIENT_BUDGET,),
    "client_late": (LATE_SHARE,),
    "overloaded": (rules.IN_TIME,),
    "host_saturated": (rules.FOREIGN_SHARE, rules.STEAL_SHARE),
    "throttled": (rules.THROTTLED_SHARE,),
    "littles_law": (rules.LITTLE_TOLERANCE,),
    "unstable": (rules.UNSTABLE_SPREAD,),
    "errors": (rules.ERRORS_VOID,),
}


def sections(name: str) -> dict[str, str]:
    """Text by heading of the second level."""
    parts = re.split(r"^## (.+)$", (DOCS / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    texts = [" ".join(text.split()) for text in parts[2::2]]
    return dict(zip(parts[1::2], texts, strict=True))


def models() -> list[type[BaseModel]]:
    return list(models_of(RunFile, Record).values())


def fields(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def test_the_page_names_exactly_the_rules_of_the_table() -> None:
    named = [heading.strip("`") for heading in sections("verdicts.md") if heading.startswith("`")]
    assert sorted(named) == sorted({rule.name for rule in RULES})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}-{rule.effect}")
def test_a_rule_stands_there_with_its_limits(rule: rules.SliceRule | rules.CellRule) -> None:
    """Its row in the table: tests/unit/judge/test_rules.py."""
    text = sections("verdicts.md")[f"`{rule.name}`"]
    limits = [*LIMITS.get(rule.name, ()), *([rule.share] if isinstance(rule, rules.SliceRule) and rule.share else [])]
    assert all(f"{limit:.0%}".replace("%", " %") in text for limit in limits)


def test_the_page_explains_every_effect() -> None:
    text = sections("verdicts.md")["What a verdict does to a figure"]
    assert all(f"| `{effect}`" in text for effect in get_args(rules.Effect))


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_every_field_of_a_model_is_documented_in_its_order(model: type[BaseModel]) -> None:
    rows = re.findall(r"\| `(\w+)` +\| ", sections("records.md")[model.__name__])
    assert rows == fields(model)


def test_records_page_has_both_files_and_every_outcome() -> None:
    found = sections("records.md")
    assert {Record.__name__, RunFile.__name__} <= set(found)
    assert all(f"`{outcome}`" in found["Record"] for outcome in get_args(Outcome))


@pytest.mark.parametrize("model", [Record, RunFile], ids=lambda model: model.__name__)
def test_the_published_schema_is_that_of_the_model(model: type[Stored]) -> None:
    names = {Record: "record", RunFile: "run"}
    written = json.loads((ROOT / "docs" / f"{names[model]}.schema.json").read_text())
    assert written == model.model_json_schema(), "renew it: make schemas"
