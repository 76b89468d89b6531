"""Every rule at both sides of its limits, case by case, and the table of docs/verdicts.md beside the rules."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from loadgen.contract import LoadResult
from orchestrator.engines.protocol import Limits, Placement
from orchestrator.images.plan import ROOT
from orchestrator.judge.rules import CELL_RULES, SLICE_RULES, Facts, Verdict, judge
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.probes.fingerprint import Fingerprint
from orchestrator.probes.results import Check, Failure, Mismatch, Round, Slice
from tests.unit.loads import load_of

Case = dict[str, Any]
FOLDER = ROOT / "tests" / "cases"
CASES: list[Case] = yaml.safe_load((FOLDER / "verdicts" / "rules.yaml").read_text(encoding="utf-8"))
CELL = expand(load_matrix(FOLDER / "small.matrix.yaml").matrix, "quick").cells[0]
RULES = (*SLICE_RULES, *CELL_RULES)
AXES = {"connections": 8, "workers": 1, "open": 0}


class Seen:
    """A document that remembers which of its fields were looked at."""

    def __init__(self, load: LoadResult) -> None:
        self.load = load
        self.fields: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if name in LoadResult.__struct_fields__:
            self.fields.add(name)
            return getattr(self.load, name)
        return getattr(LoadResult, name).fget(self)  # what follows from fields


def facts(case: Case) -> Facts:
    shown, of = case.get("shown", 1), case.get("of", 1)
    loads = [load_of(**case.get("load", {}))] * min(shown, of) + [load_of()] * (of - shown)
    mismatches = tuple(Mismatch(*fields) for fields in case.get("mismatches", ()))
    check = Check(0.1, Fingerprint(), mismatches, True, False, unverified=tuple(case.get("unverified", ())))
    good = [Round(at + 1, check, (Slice(at, "", load, 0.0),)) for at, load in enumerate(loads)]
    failed = [Round(len(good) + 1, None, (), Failure("start", reason)) for reason in case.get("failures", ())]
    server, client = tuple(case.get("server", [0])), tuple(case.get("client", [1]))
    return Facts(
        CELL.only(**{axis: case.get(axis, usual) for axis, usual in AXES.items()}),
        [*good, *failed], Placement(server, client, server == client), case.get("emulated", False), case.get("spread"),
        {"server": Limits(3 << 30, 0, 1024), "client": Limits(2 << 30, 0, 256)},
    )  # fmt: skip


def of_rule(case: Case) -> list[Verdict]:
    return [v for v in judge(facts(case)) if (v.rule, v.effect) == (case["rule"], case["effect"])]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['rule']}-{case['effect']}-{case['says']}")
def test_case(case: Case) -> None:
    assert [verdict.text for verdict in of_rule(case)] == ([] if case["says"] is None else [case["says"]])


def test_a_verdict_tells_how_many_slices_showed_it() -> None:
    (verdict,) = of_rule(next(case for case in CASES if case["rule"] == "throttled"))
    assert (verdict.slices, verdict.of) == (4, 9)


def test_a_quiet_cell_is_ok() -> None:
    assert judge(facts({})) == ()


def named(rule: Any) -> str:
    return f"{rule.name}-{rule.effect}"


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_every_rule_has_cases_of_both_kinds(rule: Any) -> None:
    assert {case["says"] is None for case in cases_of(rule)} == {True, False}


# --- the page -------------------------------------------------------------------------------------------------------


def rows() -> list[list[str]]:
    """Verdict, effect, data, text, cure of each row."""
    text = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8")
    table = text.split("## All verdicts\n")[1].split("\n## ")[0]
    return [[part.strip() for part in line.strip("|").split(" | ")] for line in re.findall(r"^\| \[.*", table, re.M)]


def row_of(rule: Any) -> list[str]:
    return next(row for row in rows() if row[:2] == head_of(rule))


def head_of(rule: Any) -> list[str]:
    return [f"[`{rule.name}`](#{rule.name})", f"`{rule.effect}`"]


def cases_of(rule: Any) -> list[Case]:
    return [case for case in CASES if (case["rule"], case["effect"]) == (rule.name, rule.effect)]


def test_the_table_has_a_row_for_each_rule_in_its_order() -> None:
    assert [row[:2] for row in rows()] == [head_of(rule) for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_row_says_what_the_rule_says(rule: Any) -> None:
    assert row_of(rule)[3:] == [cases_of(rule)[0]["says"], rule.cure]


@pytest.mark.parametrize("rule", SLICE_RULES, ids=named)
def test_a_row_names_the_fields_that_the_rule_looks_at(rule: Any) -> None:
    looked_at: set[str] = set()
    for case in cases_of(rule):
        seen: Any = Seen(load_of(**case.get("load", {})))
        rule.find(facts(case), seen)
        looked_at |= seen.fields
    of_the_load = row_of(rule)[2].split(";")[0]
    assert {name.partition(".")[0] for name in re.findall(r"`([\w.]+)`", of_the_load)} == looked_at
