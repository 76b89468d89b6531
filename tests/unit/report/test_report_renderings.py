"""Each rendering: whole against a golden file, and nothing that a server says may break it.

UPDATE_GOLDEN=1 writes tests/golden/report.* anew.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from markdown_it import MarkdownIt
from report_sample import run_file, sample, steady
from report_strategies import RUNS, TEXTS
from rich.console import Console

from orchestrator.evidence.model import CellPoint, Record, RunFile, Summary
from orchestrator.layout.text import plain
from orchestrator.report import csv_text, json_text, markdown, picture, terminal
from orchestrator.report.conditions import DRY_RUN
from orchestrator.report.document import document

GOLDEN = Path(__file__).parents[2] / "golden"
SVG = "{http://www.w3.org/2000/svg}"
some = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def shown(run: RunFile, records: list[Record], width: int = 140) -> str:
    buffer = io.StringIO()
    Console(file=buffer, width=width, highlight=False, color_system=None).print(terminal.render(run, records))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def drawn(run: RunFile, records: list[Record]) -> str:
    return picture.render(run, records).decode()


RENDERINGS: dict[str, Callable[[RunFile, list[Record]], str]] = {
    "txt": shown, "md": markdown.render, "csv": csv_text.render, "json": json_text.render, "svg": drawn,
}  # fmt: skip


@pytest.mark.parametrize("form", ["txt", "md", "csv", "json"])
def test_whole_rendering_is_the_golden_one(form: str) -> None:
    records = steady(sample())
    made = RENDERINGS[form](run_file(records), records).encode()
    path = GOLDEN / f"report.{form}"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(made)
    assert made.decode() == path.read_bytes().decode()


@pytest.mark.parametrize("form", RENDERINGS)
def test_a_dry_run_is_headed_by_a_loud_line(form: str) -> None:
    records = sample((32,))
    made = RENDERINGS[form](run_file(records, engine="memory"), records)
    assert DRY_RUN in made
    if form in ("txt", "md"):
        assert made.index(DRY_RUN) < made.index("uvicorn")


@pytest.mark.parametrize("form", ["txt", "md", "csv", "json"])
def test_an_empty_run_renders(form: str) -> None:
    assert "sample" in RENDERINGS[form](run_file([]), []) or form == "csv"


@some
@given(RUNS)
def test_any_records_render_as_text(records: list[Record]) -> None:
    run = run_file(records)
    assert not set(shown(run, records)) & {"\x1b", "\x07"}
    assert len(document(run, records).tables) <= max(1, len(records))
    json.loads(json_text.render(run, records))


@some
@given(RUNS)
def test_csv_reads_back_as_one_line_per_cell(records: list[Record]) -> None:
    rows = list(csv.reader(io.StringIO(csv_text.render(run_file(records), records), newline=""), strict=True))
    assert [len(row) for row in rows] == [len(csv_text.COLUMNS)] * (len(records) + 1)
    read = [dict(zip(csv_text.COLUMNS, row, strict=True)) for row in rows[1:]]
    assert [row["id"] for row in read] == [csv_text.safe(record.id) for record in records]
    for row, record in zip(read, records, strict=True):
        assert row["rps"] == ("" if record.summary is None else repr(record.summary.rps.value))
        assert not any(value.lstrip().startswith(("=", "@", "+", "-")) for value in row.values())


def test_csv_has_a_column_for_every_axis_and_figure() -> None:
    singles = set(Summary.model_fields) - {"latency_us", "latency_intervals_us"}
    assert (set(CellPoint.model_fields) | singles) <= set(csv_text.COLUMNS)


def test_csv_lines_end_as_rfc_4180_has_it() -> None:
    records = sample((32,))
    text = csv_text.render(run_file(records), records)
    assert text.endswith("\r\n")
    assert text.count("\r\n") == len(records) + 1


@given(TEXTS, TEXTS)
def test_markdown_shows_any_text_as_it_is(one: str, other: str) -> None:
    """Read by a Markdown parser of its own: a table stays one, and holds the very texts."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(markdown.grid(("server", "reason"), [(one, other)]))
    cells = [tokens[at + 1] for at, token in enumerate(tokens) if token.type in ("th_open", "td_open")]
    assert len(cells) == 4
    texts = [plain("".join(child.content for child in cell.children or [])) for cell in cells]
    assert texts == ["server", "reason", plain(one), plain(other)]
    assert all(child.type in ("text", "text_special") for cell in cells for child in cell.children or [])


@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(RUNS.filter(bool))
def test_any_records_give_a_well_formed_picture(records: list[Record]) -> None:
    assert ElementTree.fromstring(picture.render(run_file(records), records)).tag == f"{SVG}svg"


@pytest.mark.parametrize("connections", [(32,), (8, 32)])
def test_a_picture_names_its_rows_on_a_white_ground(connections: tuple[int, ...]) -> None:
    records = sample(connections)
    made = picture.render(run_file(records), records)
    words = " ".join(text.text or "" for text in ElementTree.fromstring(made).iter(f"{SVG}text"))
    assert all(name in words for name in ("uvicorn/standard", "granian/asgi", "lower bound"))
    assert b"fill: #ffffff" in made


def test_a_picture_is_the_same_each_time() -> None:
    records = sample((32,))
    assert picture.render(run_file(records), records) == picture.render(run_file(records), records)


def test_json_says_its_version_and_holds_raw_figures() -> None:
    records = sample((32,))
    read = json.loads(json_text.render(run_file(records), records))
    assert read["schema"] == "appserver-matrix/report/1"
    rows = {row["id"]: row for row in read["tables"][0]["rows"]}
    for record in records:
        if record.summary:
            assert rows[record.id]["summary"] == record.summary.model_dump()


@pytest.mark.parametrize(("width", "column"), [(200, "conn/req"), (120, "conn/req"), (80, "× baseline")])
def test_the_terminal_never_breaks_a_table_and_says_what_it_left_out(width: int, column: str) -> None:
    records = sample((32,))
    lines = shown(run_file(records), records, width).splitlines()
    head = next(line for line in lines if "rank  server" in line)
    assert column in head
    assert any("uvicorn/standard·starlette" in line and "baseline" in line for line in lines)
    assert any("the whole table" in line for line in lines) == (width < 150)
    assert any("CPU µs/req" in line for line in lines)
