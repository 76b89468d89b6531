"""A piece of a report that cannot be made leaves a sentence, and costs no other piece anything."""

from __future__ import annotations

import json
from typing import Any

import pytest
from report_sample import run_file, sample
from test_report_renderings import RENDERINGS

from orchestrator.evidence.model import Record
from orchestrator.report.document import document

TOLD = "The table of item, 8 connections could not be made, for a fault of this program: "


def damaged() -> list[Record]:
    """A summary of the table at 8 connections is no summary."""
    wrong: Any = "no summary"
    records = sample()
    at = next(at for at, record in enumerate(records) if record.summary and record.cell.connections == 8)
    return [*records[:at], records[at].model_copy(update={"summary": wrong}), *records[at + 1 :]]


def test_one_table_that_cannot_be_made_leaves_the_others() -> None:
    whole = document(run_file(damaged()), damaged())
    assert [table.title for table in whole.tables] == ["item, 32 connections"]
    (of_pivot, of_table) = whole.failures
    assert of_table.startswith(f"{TOLD}AttributeError: ")
    assert "(orchestrator/report/" in of_table
    assert of_pivot.startswith("The table of item could not be made")
    assert whole.facts == document(run_file(sample()), sample()).facts


@pytest.mark.parametrize("form", ["txt", "md", "json"])
def test_the_sentence_stands_in_the_report(form: str) -> None:
    made = RENDERINGS[form](run_file(damaged()), damaged())
    assert TOLD[:40] in " ".join(made.split())


def test_a_whole_report_has_no_failures() -> None:
    assert json.loads(RENDERINGS["json"](run_file(sample()), sample()))["failures"] == []


def test_a_run_that_was_judged_by_other_code_than_measured_it_says_so() -> None:
    by = {"commit": "1111111", "digest": "11", "at": "2026-02-01T00:00:00+00:00"}
    told = "Measured by the code of commit 0000000; judged again by that of 1111111 at 2026-02-01T00:00:00+00:00."
    for digest, expected in (("00", True), ("11", False)):
        run = run_file(sample(), code={"commit": "0000000", "digest": digest}, judged=by)
        assert (told in document(run, sample()).facts) == expected
