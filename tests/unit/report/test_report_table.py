"""What the tables print, for a run with every kind of row."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import pytest
from report_sample import CLIENT_BOUND as BOUND
from report_sample import assembled, cell, measured, rounds, run_file, sample

from orchestrator.evidence.model import Record
from orchestrator.probes.results import Mismatch
from orchestrator.report.conditions import DRY_RUN
from orchestrator.report.document import document
from orchestrator.report.pivot import pivots
from orchestrator.report.table import Row, Table, tables


def only_table(records: list[Record]) -> Table:
    (table,) = tables(run_file(records), records)
    return table


def row(table: Table, name: str) -> Row:
    return next(row for row in table.rows if row.name.startswith(name))


def text(table: Table, name: str, column: str) -> str:
    return row(table, name).texts[table.columns.index(column)]


def test_rows_are_ranked_by_what_their_intervals_hold_up() -> None:
    table = only_table(sample((32,)))
    ranks = {row.name: row.texts[0] for row in table.rows}
    assert ranks == {
        "granian/asgi·starlette": "1",
        "uvicorn/standard·starlette": "2–3",
        "hypercorn/uvloop·starlette": "2–3",
        "gunicorn/gthread·flask": "4",
        "gunicorn/sync·flask": "5",
        "fastapi-cli/run·fastapi": "",
        "daphne/twisted·starlette": "",
        "waitress/threads·flask": "",
    }


def test_a_bound_is_printed_as_one_and_never_outranked() -> None:
    slow = measured(cell("granian/asgi", "starlette"), rounds(9_000, changes=BOUND))
    fast = measured(cell("uvicorn/standard", "starlette"), rounds(19_000))
    table = only_table(assembled([fast, slow]))
    assert text(table, "granian", "requests/s").startswith("≥9.03k [")
    assert text(table, "granian", "× baseline").startswith("≥0.47 [")
    assert (row(table, "granian").rank, row(table, "granian").rank_last) == (1, 2)
    assert "Not resolved against uvicorn/standard: granian/asgi·starlette." in table.conclusions


@pytest.mark.parametrize(
    ("own", "base", "printed"),
    [({}, {}, "2.00 ["), (BOUND, {}, "≥2.00 ["), ({}, BOUND, "≤2.00 ["), (BOUND, BOUND, "?")],
)
def test_the_ratio_says_which_side_is_a_bound(own: Mapping[str, Any], base: Mapping[str, Any], printed: str) -> None:
    base_rounds = rounds(10_000, changes=base)
    own_rounds = rounds(20_000, changes=own)
    items = [
        measured(cell("uvicorn/standard", "starlette"), base_rounds),
        measured(cell("granian/asgi", "starlette"), own_rounds),
    ]
    table = only_table(assembled(items))
    assert text(table, "granian", "× baseline").startswith(printed)
    assert any("upper bounds" in warning for warning in table.warnings) == bool(base)
    assert any(line.startswith("Resolved ahead") for line in table.conclusions) == (not base)


def test_void_figures_are_not_printed() -> None:
    table = only_table(sample((32,)))
    void = row(table, "waitress")
    figures = [printed for printed, title in zip(void.texts, table.columns, strict=True) if title not in
               ("rank", "server", "marks")]  # fmt: skip
    assert set(figures) == {"—"}
    assert void.marks
    assert void.summary.rps.value > 0


def test_a_void_baseline_leaves_no_ratio() -> None:
    items = [
        measured(cell("uvicorn/standard", "starlette"), rounds(10_000, changes={"errors": {"wrong_body": 1}})),
        measured(cell("granian/asgi", "starlette"), rounds(20_000)),
    ]
    table = only_table(assembled(items))
    assert text(table, "granian", "× baseline") == "—"
    assert table.warnings == ("The figure of the baseline uvicorn/standard is void: no ratio is printed.",)
    assert table.conclusions == ()


def test_an_unranked_baseline_proves_nothing() -> None:
    log = (Mismatch("access_log", "False", "True"),)
    items = [
        measured(cell("uvicorn/standard", "starlette"), rounds(10_000, mismatches=log)),
        measured(cell("granian/asgi", "starlette"), rounds(20_000)),
    ]
    table = only_table(assembled(items))
    assert table.warnings == ("The baseline uvicorn/standard is itself outside the order (a): ratios prove nothing.",)
    assert not any("esolved" in line for line in table.conclusions)


def test_without_a_baseline_rows_are_ranked_by_rps() -> None:
    items = [measured(cell(name, "starlette"), rounds(rps)) for name, rps in (("a/x", 10_000), ("b/x", 20_000))]
    table = only_table(assembled(items))
    assert [row.name for row in table.rows] == ["b/x·starlette", "a/x·starlette"]
    assert {text(table, row.name, "× baseline") for row in table.rows} == {"—"}
    assert "has no figure here" in table.warnings[0]


def test_one_round_resolves_nothing() -> None:
    items = [
        measured(cell(name, "starlette"), rounds(rps, 32, count=1))
        for name, rps in (("uvicorn/standard", 10_000), ("granian/asgi", 20_000))
    ]
    table = only_table(assembled(items))
    assert text(table, "granian", "requests/s") == "20.0k"
    assert text(table, "granian", "rank") == "1–2"
    assert "Not resolved against uvicorn/standard: granian/asgi·starlette." in table.conclusions


def test_each_verdict_has_one_footnote_with_its_rows_and_cure() -> None:
    table = only_table(sample((32,)))
    notes = {note.rule: note for note in table.footnotes}
    assert {rule: [name for name, _ in note.rows] for rule, note in notes.items()} == {
        "errors": ["waitress/threads·flask"],
        "host_saturated": ["daphne/twisted·starlette"],
        "undeclared_config": ["fastapi-cli/run·fastapi"],
        "client_bound": ["granian/asgi·starlette"],
    }
    marked = {letter for row in table.rows for letter in row.marks.split()}
    assert marked == {note.letter for note in table.footnotes}
    assert all(note.cure for note in table.footnotes)


def test_cells_without_figures_are_listed_with_the_reason() -> None:
    table = only_table(sample((32,)))
    assert {(missing.name, missing.outcome) for missing in table.missing} == {
        ("bjoern/script·flask·sdist", "not installed"),
        ("cheroot/threads·flask", "not started"),
    }
    assert all(missing.reason for missing in table.missing)


def test_names_tell_rows_apart_by_the_axes_that_differ() -> None:
    axes: list[dict[str, Any]] = [
        {},
        {"workers": 2},
        {"python": "3.14"},
        {"threads": 8},
        {"flavour": "alpine"},
        {"tuned": True},
    ]
    cells = [cell("gunicorn/gthread", "flask", **{"threads": 4, **axis}) for axis in axes]
    table = only_table(assembled([measured(one, rounds(1_000)) for one in cells], "gunicorn/gthread"))
    assert len({row.name for row in table.rows}) == len(axes)
    assert table.common == "wheel"
    assert "stands in 6 rows" in " ".join(table.warnings)


def test_rows_do_not_depend_on_the_order_of_records() -> None:
    records = sample((32,))[:4]
    seen = {tuple(row.name for row in only_table(list(order)).rows) for order in permutations(records)}
    assert len(seen) == 1


def test_one_table_for_each_number_of_connections_and_one_pivot() -> None:
    records = sample()
    run = run_file(records)
    assert [table.title for table in tables(run, records)] == ["item, 8 connections", "item, 32 connections"]
    (pivot,) = pivots(run, records)
    cells = {row.name: [found.text if found else None for found in row.cells] for row in pivot.rows}
    assert cells["granian/asgi·starlette"] == ["≥27.1k · ≥1.42× d"] * 2
    assert cells["uvicorn/standard·starlette"] == ["19.1k · baseline"] * 2
    assert cells["waitress/threads·flask"] == ["— a"] * 2
    assert cells["bjoern/script·flask·sdist"] == ["not installed"] * 2
    assert ("granian/asgi·starlette", "at 8 and 32") in [row for note in pivot.footnotes for row in note.rows]


def test_one_number_of_connections_needs_no_pivot() -> None:
    records = sample((32,))
    assert pivots(run_file(records), records) == ()


def test_records_of_other_probes_stand_in_no_table_of_throughput() -> None:
    records = [record.model_copy(update={"probe": "install"}) for record in sample((32,))]
    assert tables(run_file(records), records) == ()


def test_a_stand_in_is_never_named_as_the_official_image() -> None:
    records = sample((32,))
    facts = document(run_file(records), records).facts
    assert any("stand-in made from Debian packages (appserver-matrix/standin-slim" in fact for fact in facts)
    assert not any("python:3.13" in fact for fact in facts)


def test_facts_tell_engine_python_cpus_and_an_unfinished_run() -> None:
    records = sample((32,))
    run = run_file(records, complete=False, cells=[record.id for record in records] + ["one more"])
    told = " ".join(document(run, records).facts)
    for part in (
        "docker 20.10: a Docker Engine answers",
        "CPython 3.13.5 in 8 cells",
        "server on CPU 0, load generator on CPU 1",
        "not complete: 3 of 3 rounds and 10 of 11 cells on record",
        "this machine's",
    ):
        assert part in told


def test_left_out_cells_are_told_once_by_reason() -> None:
    records = sample((32,))
    (left_out,) = document(run_file(records), records).left_out
    assert (left_out.names, left_out.why) == (("meinheld/gunicorn-worker",), "excluded: does not build")


def test_only_a_dry_run_has_the_banner() -> None:
    records = sample((32,))
    assert document(run_file(records, engine="memory"), records).banner == DRY_RUN
    assert document(run_file(records), records).banner == ""


def test_an_empty_run_has_a_document() -> None:
    assert document(run_file([]), []).tables == ()
