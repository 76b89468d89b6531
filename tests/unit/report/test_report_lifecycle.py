"""Tables and timelines of starts, ends and deploys, from runs of the memory engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cells.expand import expand
from orchestrator.engines.memory import Behaviour, MemoryEngine
from orchestrator.images.plan import ROOT
from orchestrator.pipeline import Order, run
from orchestrator.records.model import Record, RunFile
from orchestrator.report import deploy, lifecycle, markdown, picture, startup
from orchestrator.report.timeline import line
from orchestrator.spec.loading import load_matrix

SERVERS = ("uvicorn/standard", "waitress/threads", "daphne/twisted", "fastapi-cli/run")


@pytest.fixture
def ran(tmp_path: Path) -> tuple[RunFile, list[Record]]:
    return measured(tmp_path, "shutdown", waitress="ignored", daphne="cut", **{"fastapi-cli": "reset"})


def measured(folder: Path, suite: str, **ends: str) -> tuple[RunFile, list[Record]]:
    """A run of the memory engine in which servers end so; the others answer."""
    behaviours = {name: Behaviour(end=ends.get(name.partition("/")[0], "answered")) for name in SERVERS}
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    selection = expand(matrix, suite, only=tuple(f"{name}*" for name in SERVERS))
    return run(Order(matrix, selection, folder / "run"), MemoryEngine(behaviours), lambda _: None)


def tuned_as(records: list[Record], name: str, other: str) -> list[Record]:
    """The records, with the tuned row of one server ending as another server did."""
    donor = next(record for record in records if lifecycle.name_of(record) == other)
    return [
        record.model_copy(update={"shutdown": donor.shutdown})
        if lifecycle.name_of(record) == name and record.cell.tuned else record
        for record in records
    ]  # fmt: skip


def test_default_and_tuned_stand_side_by_side(ran: tuple[RunFile, list[Record]]) -> None:
    _, records = ran
    _, table, _ = lifecycle.sheets(records)
    rows = {(row[0], row[2]): row[3:] for row in table.rows}
    assert rows["uvicorn/standard", "default"] == ("kept", "1250", "1300", "0", "closed", "closed", "refused")
    assert rows["uvicorn/standard", "--timeout-graceful-shutdown 8"][0] == "kept"
    assert rows["waitress/threads", "default"][0] == "ignored"
    assert rows["waitress/threads", "STOPSIGNAL SIGINT"][2:4] == ("—", "killed")
    assert rows["daphne/twisted", "default"][0] == "dropped (cut)"
    assert rows["fastapi-cli/run", "default"][0] == "dropped (reset)"
    assert "process 1 of its container" in table.common


def test_the_overview_has_one_row_for_each_server(ran: tuple[RunFile, list[Record]]) -> None:
    _, records = ran
    overview = lifecycle.sheets(tuned_as(records, "daphne/twisted", "uvicorn/standard"))[0]
    rows = {row[0]: row[2:] for row in overview.rows}
    assert rows["uvicorn/standard"] == ("kept", "--timeout-graceful-shutdown 8")
    assert rows["daphne/twisted"][0] == "dropped (cut) → kept"
    assert rows["waitress/threads"] == ("ignored", "STOPSIGNAL SIGINT")
    assert rows["fastapi-cli/run"] == ("dropped (reset)", "—")


def test_the_overview_of_several_cases_has_a_column_for_each(tmp_path: Path) -> None:
    _, records = measured(tmp_path, "shutdown-cases", uvicorn="answered")
    assert lifecycle.sheets(records)[0].columns[2:-1] == (
        "SIGINT", "second signal", "signal to the group", "longer than grace", "streamed answer",
    )  # fmt: skip


def test_conclusions_name_the_flag_that_keeps_a_request_or_say_that_none_was_found(
    ran: tuple[RunFile, list[Record]],
) -> None:
    _, records = ran
    told = lifecycle.sheets(tuned_as(records, "daphne/twisted", "uvicorn/standard"))[1].legend[:3]
    assert [line.partition(":")[0] for line in told] == [
        "Kept by default", "Not kept by default, kept when tuned", "No flag found that keeps it",
    ]  # fmt: skip
    assert "daphne/twisted (dropped (cut); kept with" in told[1]
    assert "waitress/threads (ignored; with STOPSIGNAL SIGINT: ignored)" in told[2]
    assert "fastapi-cli/run (dropped (reset))" in told[2]


def test_a_timeline_has_request_signal_end_and_exit(ran: tuple[RunFile, list[Record]]) -> None:
    _, records = ran
    lines = {lifecycle.name_of(r): line(r.shutdown.cases[0].repetitions[0]) for r in records if r.shutdown}
    assert lines["uvicorn/standard"].startswith("r----S----")
    assert [lines[name].strip("·r-")[-2:] for name in ("uvicorn/standard", "daphne/twisted", "fastapi-cli/run")] == [
        "AE", "CE", "RE",
    ]  # fmt: skip
    assert lines["waitress/threads"].strip("·").endswith("-A")
    assert {len(text) for text in lines.values()} == {61}


def test_pages_and_pictures_take_all_probes(tmp_path: Path) -> None:
    for suite in ("startup", "shutdown", "shutdown-cases", "deploy"):
        run_file, records = measured(tmp_path / suite, suite)
        page = markdown.render(run_file, records)
        assert "| uvicorn/standard" in page
        if suite == "shutdown":
            assert b"daphne/twisted" in picture.render(run_file, records)


def test_a_server_that_did_not_start_is_named_with_its_reason(tmp_path: Path) -> None:
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    engine = MemoryEngine({"waitress/threads": Behaviour(start_error="no such option")})
    for suite, sheets in (("startup", startup.sheets), ("deploy", deploy.sheets)):
        order = Order(matrix, expand(matrix, suite, only=("waitress*",)), tmp_path / suite)
        _, records = run(order, engine, lambda _: None)
        missing = sheets(records)[-1]
        assert ("waitress/threads", "not started", "no such option") in missing.rows
