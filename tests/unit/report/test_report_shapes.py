"""A suite is read in the shape that its source publishes: whole against golden files, and what must hold in any.

UPDATE_GOLDEN=1 writes tests/golden/report.SHAPE.md anew.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_sample import BASELINE, CLIENT_BOUND, assembled, cell, measured, rounds, run_file, sample
from report_shapes import SHAPES, shape
from report_strategies import RUNS
from test_report_renderings import shown

from orchestrator.errors import SpecError
from orchestrator.evidence.model import Record
from orchestrator.figures import FigureName
from orchestrator.matrix.axes import AxisName
from orchestrator.matrix.models import View
from orchestrator.report import csv_text, json_text, markdown, picture
from orchestrator.report.axes import WORDS
from orchestrator.report.document import document
from orchestrator.report.flat import flats
from orchestrator.report.measures import MEASURES
from orchestrator.report.pivot import Pivot, pivots
from orchestrator.report.table import tables

GOLDEN = Path(__file__).parents[2] / "golden"
ACROSS = (*get_args(AxisName), "none")
some = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
VIEWS = st.builds(
    lambda across, show: {"across": across, "show": show},
    st.sampled_from(ACROSS), st.lists(st.sampled_from(get_args(FigureName)), min_size=1, max_size=4, unique=True),
)  # fmt: skip


def only_pivot(name: str) -> Pivot:
    (pivot,) = pivots(*SHAPES[name]())
    return pivot


def texts(pivot: Pivot) -> dict[str, list[str]]:
    return {row.name: [cell.text if cell else "" for cell in row.cells] for row in pivot.rows}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_the_golden_one(name: str) -> None:
    made = markdown.render(*SHAPES[name]()).encode()
    path = GOLDEN / f"report.{name}.md"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(made)
    assert made.decode() == path.read_text(encoding="utf-8")


def test_every_axis_and_figure_of_a_view_has_words() -> None:
    assert set(get_args(AxisName)) <= set(WORDS)
    assert set(get_args(FigureName)) <= set(MEASURES)


def test_columns_are_headed_in_the_readers_words() -> None:
    headings = {name: only_pivot(name).headings for name in ("workers", "images", "aa", "capacity")}
    assert headings == {
        "workers": ("1", "2", "4"),
        "images": ("slim", "alpine", "debian"),
        "aa": ("own name", "second name"),
        "capacity": ("closed", "50 %", "90 %"),
    }


def test_ratios_name_what_they_refer_to() -> None:
    told = {name: only_pivot(name).told for name in ("workers", "images", "aa")}
    assert told == {
        "workers": "requests/s · × 1 worker · p50, by workers",
        "images": "requests/s · × slim wheel · memory · req/CPU × slim wheel, by flavour",
        "aa": "requests/s · × own name · CPU/req, by name",
    }


def test_a_row_holds_its_own_reference() -> None:
    found = texts(only_pivot("workers"))
    assert found["gunicorn/sync·flask"] == [
        "970 · 1× · 53.5 ms",
        "1.91k · 1.96× · 27.2 ms d",
        "3.66k · 3.77× · 14.2 ms d",
    ]
    assert found["granian/asgi·starlette"][1] == "≥35.1k · ≥1.75× · 1.48 ms c d"
    assert found["waitress/a·flask"][:2] == ["— a", "1.81k · 28.7 ms d"]
    assert found["daphne/a·starlette"][0] == "not installed"


def test_conclusions_stand_where_both_sides_of_a_ratio_do() -> None:
    pivot = only_pivot("workers")
    assert pivot.conclusions[1] == (
        "Resolved behind the same server with 1 worker: uvicorn/standard·starlette at 4 (0.95×)."
    )
    assert not any("cheroot" in line or "waitress" in line for line in pivot.conclusions)
    assert any("cheroot/a·flask: with 1 worker, the figure is outside the order" in line for line in pivot.warnings)
    (table,) = tables(*SHAPES["workers"]())
    assert not any("same server" in line for line in table.conclusions)


def test_ratios_to_another_column_are_concluded_from_in_the_tables() -> None:
    view = {"across": "connections", "show": ["rps", "ratio"]}
    (table,) = tables(*shape("workers", view=view))
    assert any(line.startswith("Resolved ahead of the same server with 1 worker: ") for line in table.conclusions)
    assert "× 1 worker" in table.columns


def test_rows_of_several_references_are_ranked_by_rps() -> None:
    (table,) = tables(*SHAPES["workers"]())
    ranked = [row.summary.rps.value for row in table.rows if row.rank]
    assert ranked == sorted(ranked, reverse=True)


def test_axes_that_are_apart_have_pivots_of_their_own() -> None:
    run, made = SHAPES["runners"]()
    assert [pivot.title for pivot in pivots(run, made)] == ["1 worker, 32 connections", "2 workers, 32 connections"]
    assert [table.title for table in tables(run, made)][:2] == [
        "item, 1 worker, 32 connections",
        "item-sync, 1 worker, 32 connections",
    ]
    found = texts(pivots(run, made)[1])
    assert found["gunicorn/uvicorn-worker-threads·fastapi·t0"] == ["3.43k · baseline a", "2.66k · baseline a"]
    assert found["uvicorn/standard·fastapi"] == ["2.74k · 0.80× a", "2.13k · 0.80× a"]


def test_a_flat_table_has_the_axes_that_vary_and_then_the_figures() -> None:
    (flat,) = flats(*SHAPES["native"]())
    assert flat.columns == (
        "rank", "server", "protocol", "TLS", "workers", "× baseline", "requests/s", "p50", "p99", "between", "within",
        "marks",
    )  # fmt: skip
    rows = [row.texts[:5] for row in flat.rows]
    assert rows[3:6] == [
        ("4", "gunicorn/uvicorn-worker·raw-asgi", "asgi", "no TLS", "1"),
        ("1", "freastal/wsgi·raw-wsgi", "wsgi", "no TLS", "4"),
        ("2–3", "freastal/asgi·raw-asgi", "asgi", "no TLS", "4"),
    ]
    assert len({row.name for row in flat.rows}) == len(flat.rows)
    assert [missing.name for missing in flat.missing] == ["meinheld/a·raw-wsgi·w1"]
    assert any(line.startswith("4 workers, 40 connections: Unresolved, ") for line in flat.conclusions)


def test_an_aa_pair_gives_the_noise_floor() -> None:
    lines = only_pivot("aa").conclusions
    assert lines[0].startswith("An A/A pair, one server under two names, differs by +5.6 % [+3.5, +7.7] (granian")
    assert lines[1:] == (
        "Noise floor: 7.7 %. Differences below that prove nothing here.",
        "Resolved though nothing differs, as one pair of twenty may be: granian/asgi·starlette.",
        "Prove nothing, and are left out of it: waitress/a·starlette.",
    )


def test_one_round_gives_no_noise_floor() -> None:
    items = [measured(cell(BASELINE, "starlette", twin=twin), rounds(9_000, count=1)) for twin in (False, True)]
    made = assembled(items, "", against={"twin": False})
    run = run_file(made, baseline="", against={"twin": False}, view={"across": "twin", "show": ["rps", "ratio"]})
    (pivot,) = pivots(run, made)
    assert pivot.conclusions == ("No pair has an interval that may be used: the noise floor is not known.",)


def test_an_open_loop_shows_latency_and_says_where_it_was_overloaded() -> None:
    pivot = only_pivot("capacity")
    assert texts(pivot)["gunicorn/sync·flask"] == ["1.00k", "6.46 ms · 21.8 ms", "4.62 ms · 15.6 ms · overloaded a"]
    assert "Overloaded" in pivot.conclusions[0]
    assert "gunicorn/sync·flask at 90 % (77.3 % of 900 requests/s answered in time)" in pivot.conclusions[0]
    run, made = SHAPES["capacity"]()
    titles = [table.title for table in tables(run, made)]
    assert titles == [
        "item, 32 connections",
        "item, open loop at 50 %, 32 connections",
        "item, open loop at 90 %, 32 connections",
    ]
    half = tables(run, made)[1]
    assert half.columns[:3] == ("server", "asked/s", "in time")
    assert half.conclusions[0] == "Every server kept up with what came in."
    assert all(row.rank is None for row in half.rows)
    assert not any("baseline" in line for line in (*half.warnings, *half.conclusions))
    assert "By p50: uvicorn/standard·starlette < gunicorn/sync·flask." in half.conclusions
    assert not any(line.startswith("By p50") for line in tables(run, made)[2].conclusions)  # one is overloaded


def test_lower_bounds_are_ordered_by_what_they_cost() -> None:
    items = [measured(cell(BASELINE, "starlette"), rounds(19_000))]
    for name, cpu_s in (("b/dear", 0.9), ("a/cheap", 0.5)):
        server = {"cpu_s": cpu_s, "rss_bytes": 1, "pss_bytes": None, "processes": 1}
        changes = {**CLIENT_BOUND, "server": server, "host": None}
        items.append(measured(cell(name, "starlette"), rounds(40_000, changes=changes)))
    made = assembled(items)
    (table,) = tables(run_file(made), made)
    line = "By CPU per request, which the load generator does not limit: a/cheap·starlette < b/dear·starlette."
    assert line in table.conclusions
    assert table.costs is not None
    assert [row[0] for row in table.costs.rows] == [
        "a/cheap·starlette",
        "b/dear·starlette",
        "uvicorn/standard·starlette",
    ]


def test_costs_have_only_columns_with_figures_and_no_void_rows() -> None:
    records = sample((32,))
    (table,) = tables(run_file(records), records)
    assert table.costs is not None
    assert table.costs.columns == ("server", "CPU µs/req", "req/CPU × baseline", "MB")
    assert not any("waitress" in row[0] for row in table.costs.rows)


@pytest.mark.parametrize("name", SHAPES)
def test_a_terminal_of_120_columns_keeps_tables_whole(name: str) -> None:
    lines = shown(*SHAPES[name](), 120).splitlines()
    assert max(map(len, lines)) <= 120
    heads = [line for line in lines if line.lstrip().startswith(("rank  server", "server  "))]
    assert len(heads) >= 2


@pytest.mark.parametrize(
    ("width", "place"), [(140, "1.91k · 1.96× · 27.2 ms d"), (90, "1.91k · 1.96× d"), (70, "1.91k d")]
)
def test_a_narrow_terminal_gets_the_first_figures_of_each_place_and_is_told(width: int, place: str) -> None:
    lines = shown(*SHAPES["workers"](), width).splitlines()
    row = next(line for line in lines if line.startswith(" gunicorn/sync·flask  "))
    assert re.split(r"  +", row)[2] == place
    assert any("all figures need" in line for line in lines) == (width < 140)


def test_ratios_may_refer_to_another_comparison() -> None:
    against, view = {"tls": False}, {"across": "tls", "show": ["rps", "ratio"]}
    items = [measured(cell(BASELINE, "starlette", tls=tls), rounds(10_000 * (2 - tls))) for tls in (False, True)]
    made = assembled(items, "", against=against)
    run = run_file(made, baseline="", against=against, view=view)
    (pivot,) = pivots(run, made)
    assert pivot.headings == ("no TLS", "TLS")
    assert [cell.text for cell in pivot.rows[0].cells if cell] == ["20.1k · 1×", "10.0k · 0.50×"]
    assert pivot.warnings == ()
    assert pivot.conclusions[0] == (
        "Resolved behind the same server with no TLS: uvicorn/standard·starlette with TLS (0.50×)."
    )
    assert [table.title for table in tables(run, made)] == ["item, 32 connections", "item, TLS, 32 connections"]


@pytest.mark.parametrize("name", SHAPES)
def test_a_page_gets_the_view_of_the_suite(name: str) -> None:
    run, made = SHAPES[name]()
    whole = document(run, made)
    found = markdown.excerpt(run, made)
    assert found.count("### ") - found.count("#### ") == len(whole.pivots) + len(whole.flats) > 0


@pytest.mark.parametrize("name", SHAPES)
def test_a_picture_draws_the_view(name: str) -> None:
    run, made = SHAPES[name]()
    tree = ElementTree.fromstring(picture.render(run, made))
    words = " ".join(text.text or "" for text in tree.iter("{http://www.w3.org/2000/svg}text"))
    shown_rows = [
        row.name for pivot in pivots(run, made) for row in pivot.rows if any(c and c.drawn for c in row.cells)
    ]
    assert all(row in words for row in shown_rows)
    assert "$" not in words


def test_a_run_without_a_picture_says_so() -> None:
    records = [record.model_copy(update={"probe": "install"}) for record in sample((32,))]
    with pytest.raises(SpecError, match="nothing that is drawn") as caught:
        picture.render(run_file(records), records)
    assert caught.value.exit_code == 2


def test_why_an_adaptive_run_ended_is_a_fact() -> None:
    records = sample((32,))
    why = "every ratio is known to 3 %: after 3 rounds"
    run = run_file(records, stopped=why, schedule={"rounds": 2, "slices": 3, "slice_s": 1.0})
    facts = document(run, records).facts
    assert f"Why measuring ended: {why}." in facts
    assert any(fact.startswith("2 to 3 rounds (fresh starts)") for fact in facts)


def test_runs_of_before_references_read_the_same() -> None:
    made = sample()
    old = [record.model_copy(update={"reference": ""}) for record in made]
    assert document(run_file(old), old) == document(run_file(made), made)


@some
@given(RUNS, VIEWS, st.lists(st.sampled_from(["workers", "flavour", "twin"]), unique=True, max_size=2))
def test_each_cell_stands_in_one_place_of_any_view(
    records: list[Record], view: dict[str, object], apart: list[str]
) -> None:
    run = run_file(records, view=view, apart=apart)
    whole = document(run, records)
    places = [cell.id for pivot in whole.pivots for row in pivot.rows for cell in row.cells if cell]
    for flat in whole.flats:
        places += [*(row.id for row in flat.rows), *(row.id for row in flat.missing)]
    assert len(places) == len(set(places))
    rows = [row.id for table in whole.tables for row in table.rows]
    rows += [row.id for table in whole.tables for row in table.missing]
    assert sorted(rows) == sorted(record.id for record in records)
    assert all(len(row.cells) == len(pivot.values) > 1 for pivot in whole.pivots for row in pivot.rows)


@some
@given(RUNS, VIEWS)
def test_any_records_render_in_any_view(records: list[Record], view: dict[str, object]) -> None:
    run = run_file(records, view=view)
    json.loads(json_text.render(run, records))
    assert csv_text.render(run, records).count("\r\n") > len(records)
    assert not set(shown(run, records, 120)) & {"\x1b", "\x07"}
    assert "\x1b" not in markdown.render(run, records)


def test_a_run_without_a_view_is_read_across_connections() -> None:
    assert View() == View.model_validate({})
    assert View().across == "connections"
