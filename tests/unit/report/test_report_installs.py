"""The tables of the install probe: symbols, legend, reasons, in every rendering."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.engines.memory import Behaviour, MemoryEngine
from orchestrator.evidence.model import Record, RunFile
from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand, one_flavour
from orchestrator.matrix.loading import load_matrix
from orchestrator.pipeline import Order, run
from orchestrator.probes.install import view as installs
from orchestrator.probes.install.record import InstallError, InstallSection
from orchestrator.report import csv_text, json_text, markdown, terminal

MATRIX = load_matrix(ROOT / "matrix.yaml").matrix
ONLY = ("waitress*·slim·*", "bjoern*·slim·*", "socketify*·slim·*", "uwsgi/source*·slim·*")
Run = tuple[RunFile, list[Record]]


def changed(record: Record) -> Record:
    """What was found of some servers, on slim: the memory engine knows but plain success."""
    error = {
        ("bjoern", "wheel"): InstallError(kind="no_wheel", line="ERROR: no version of bjoern | none"),
        ("bjoern", "sdist"): InstallError(kind="missing_header", line="fatal error: ev.h: No such file"),
    }.get((record.cell.server, record.cell.mode))
    told: dict[str, object] = {"error": error, "outcome": "failed", "serves": None} if error else {}
    if record.cell.server == "uwsgi":
        told = {"outcome": "compiled", "seconds": {"build": 69.0}, "system": ["libpython3.13"]}
    if record.cell.server == "socketify":
        told = {"outcome": "wheel", "serves": False, "why_not": "libuv.so.1: cannot open shared object file"}
    section: InstallSection | None = record.install
    return record.model_copy(update={"install": section and section.model_copy(update=told)})


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Run:
    engine = MemoryEngine({"waitress": Behaviour()})
    selection = expand(MATRIX, "installs", only=ONLY)
    run_file, records = run(Order(MATRIX, selection, tmp_path_factory.mktemp("run")), engine, lambda _: None)
    return run_file.model_copy(update={"engine": {"name": "docker"}}), [changed(record) for record in records]


def rows(found: Run) -> Mapping[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in installs.install_tables(*found)[0].rows}


def test_each_outcome_has_its_mark(found: Run) -> None:
    assert installs.install_tables(*found)[0].columns == ("server", "slim wheel", "slim sdist")
    assert rows(found) == {
        "waitress/threads": ("○", "○"),
        "uwsgi/source": ("■", "■"),
        "bjoern/script": ("✗w", "✗h"),
        "socketify/asgi": ("●!", "●!"),
        "installs and serves": ("2 of 4", "2 of 4"),
    }


def test_the_legend_has_the_marks_that_are_used_and_no_others(found: Run) -> None:
    (legend,) = installs.install_tables(*found)[0].legend
    assert legend == (
        "○ pure Python; ● wheels for this platform; ■ compiled here; ! installs, but does not serve; ✗ fails; "
        "✗w no wheel; ✗h missing header."
    )


def test_reasons_are_given_once_with_every_place(found: Run) -> None:
    assert installs.install_tables(*found)[0].reasons == (
        "bjoern/script ✗w (slim wheel): ERROR: no version of bjoern | none",
        "bjoern/script ✗h (slim sdist): fatal error: ev.h: No such file",
        "socketify/asgi ●! (slim wheel, slim sdist): libuv.so.1: cannot open shared object file",
    )


def test_an_image_that_is_not_there_is_no_outcome(found: Run) -> None:
    run_file, records = found
    absent = [record.model_copy(update={"install": None}) for record in records]
    assert set(rows((run_file, absent))["waitress/threads"]) == {"?"}


def test_costs_show_the_first_success_and_the_first_compilation(found: Run) -> None:
    costs = {row[0]: row for row in installs.install_tables(*found)[1].rows}
    assert set(costs) == {"waitress/threads", "uwsgi/source", "socketify/asgi"}
    assert costs["uwsgi/source"][1:6] == ("slim wheel", "compiled", "0", "69.0", "0")
    assert costs["uwsgi/source"][-1] == "libpython3.13"


def test_every_rendering_tells_it(found: Run) -> None:
    console = Console(width=160, file=io.StringIO(), highlight=False)
    console.print(terminal.render(*found))
    assert isinstance(console.file, io.StringIO)
    shown, text = console.file.getvalue(), markdown.render(*found)
    assert "✗h missing header" in shown and "bjoern/script ✗w (slim wheel)" in shown
    assert "| bjoern/script       |         ✗w |         ✗h |" in text
    assert "no version of bjoern \\| none" in text
    assert "requests/s" not in shown + text and "rounds" not in shown + text
    told = json.loads(json_text.render(*found))
    assert told["sheets"][0]["rows"][0][0] == "waitress/threads"
    lines = list(csv.DictReader(io.StringIO(csv_text.render(*found), newline="")))
    assert [line["error_kind"] for line in lines if line["server"] == "bjoern"] == ["no_wheel", "missing_header"]
    assert {line["serves"] for line in lines if line["server"] == "socketify"} == {"false"}


def test_without_docker_there_is_one_column_for_each_mode(tmp_path: Path) -> None:
    selection = one_flavour(expand(MATRIX, "installs", only=("waitress*",)))
    assert [(cell.flavour, cell.mode) for cell in selection.cells] == [("slim", "wheel"), ("slim", "sdist")]
    assert {item.why for item in selection.left_out if item.id.startswith("waitress")} == {
        "without Docker there are no flavours: only the host's own Python was covered"
    }
    run_file, records = run(Order(MATRIX, selection, tmp_path), MemoryEngine(), lambda _: None)
    (outcomes, _) = installs.install_tables(run_file.model_copy(update={"engine": {"name": "local"}}), records)
    assert outcomes.columns == ("server", "wheel", "sdist")
    assert outcomes.common.startswith("the host's own Python alone, flavours were not covered")
