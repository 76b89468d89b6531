"""Tables and timelines of starts, ends and deploys, from runs of the memory engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engines.memory import Behaviour, MemoryEngine
from orchestrator.evidence.model import Record, RunFile
from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.pipeline import Order, run
from orchestrator.probes.deploy import view as deploy
from orchestrator.probes.shutdown import view as shutdown
from orchestrator.probes.shutdown.fates import IN_FLIGHT, QUEUED, Watched, Ways, helped
from orchestrator.probes.shutdown.record import EndingCase
from orchestrator.probes.shutdown.timeline import line
from orchestrator.probes.startup import view as startup
from orchestrator.probes.views import name_of
from orchestrator.report import markdown, picture


@dataclass(frozen=True)
class OnDocker:
    """The run that the records are of, as far as views read it."""

    engine: Mapping[str, str]


RUN = OnDocker({"name": "docker"})
SERVERS = ("uvicorn/standard", "waitress/threads", "daphne/twisted", "fastapi-cli/run")


@pytest.fixture
def ran(tmp_path: Path) -> tuple[RunFile, list[Record]]:
    return measured(tmp_path, "shutdown", waitress="ignored", daphne="cut", **{"fastapi-cli": "reset"})


def measured(folder: Path, suite: str, **ends: Any) -> tuple[RunFile, list[Record]]:
    """A run of the memory engine in which servers end so; the others answer."""
    queued: dict[str, Any] = {"uvicorn/standard": "at_once", "daphne/twisted": "reset"}
    behaviours = {
        name: Behaviour(end=ends.get(name.partition("/")[0], "answered"), queued=queued.get(name, "answered"))
        for name in SERVERS
    }
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    selection = expand(matrix, suite, only=tuple(f"{name}*" for name in SERVERS))
    return run(Order(matrix, selection, folder / "run"), MemoryEngine(behaviours), lambda _: None)


def tuned_as(records: list[Record], name: str, other: str) -> list[Record]:
    """The records, with the tuned row of one server ending as another server's did."""
    donor = next(record for record in records if name_of(record) == other and record.cell.tuned)
    return [
        record.model_copy(update={"shutdown": donor.shutdown})
        if name_of(record) == name and record.cell.tuned else record
        for record in records
    ]  # fmt: skip


def test_default_and_tuned_stand_side_by_side(ran: tuple[RunFile, list[Record]]) -> None:
    _, records = ran
    table = shutdown.shutdown_tables(RUN, records)[1]
    rows = {(row[0], row[2]): row[3:] for row in table.rows}
    assert rows["uvicorn/standard", "default"] == (
        "kept", "1250", "1300", "0", "at once", "closed", "closed", "refused",
    )  # fmt: skip
    assert rows["uvicorn/standard", "--timeout-graceful-shutdown 8"][0] == "kept"
    assert rows["waitress/threads", "default"][0] == "ignored"
    assert rows["waitress/threads", "STOPSIGNAL SIGINT"][2:4] == ("—", "killed")
    assert rows["daphne/twisted", "default"][0] == "dropped (cut)"
    assert rows["fastapi-cli/run", "default"][0] == "dropped (reset)"
    assert "process 1 of its container" in table.common


def test_the_overview_has_one_row_for_each_server_and_a_column_for_each_number_of_workers(
    ran: tuple[RunFile, list[Record]],
) -> None:
    _, records = ran
    overview = shutdown.shutdown_tables(RUN, tuned_as(records, "daphne/twisted", "uvicorn/standard"))[0]
    assert overview.columns[2:] == (
        "request in flight, 1 worker", "request in flight, 2 workers", "queued request, 1 worker",
        "queued request, 2 workers", "what was found to help",
    )  # fmt: skip
    rows = {row[0]: row[2:] for row in overview.rows}
    assert rows["uvicorn/standard"] == ("kept", "kept", "at once", "at once", "not needed")
    assert rows["daphne/twisted"] == (
        "dropped (cut) → kept", "—", "dropped (reset) → at once", "—", "--timeout-graceful-shutdown 8",
    )  # fmt: skip
    assert rows["waitress/threads"] == ("ignored", "—", "ignored", "—", "no flag found")
    assert rows["fastapi-cli/run"][:4] == ("dropped (reset)", "dropped (reset)", "kept", "kept")
    assert rows["fastapi-cli/run"][4] == "request in flight: no flag was tried"


def ending(outcome: str, queued: str = "at_once", flags: str = "", signal: str = "SIGTERM") -> EndingCase:
    return EndingCase(
        case="term", signal=signal, request="/", flags=flags, pid1=True, outcome=outcome, outcomes={outcome: 3},
        end_ms=1, exit_ms=1, exit_codes={"killed" if outcome == "ignored" else "0": 3}, signal_error_us=1, places=1,
        queued={queued: 3}, idle={}, kept={}, new={}, repetitions=[],
    )  # fmt: skip


KEPT, CUT = ending("answered", "answered"), ending("cut", "reset")
HELPS = ending("answered", "answered", "--wait 8", "SIGINT")
USELESS = ending("cut", "reset", "--wait 8")


@pytest.mark.parametrize(
    ("ways", "text"),
    [
        ({1: Ways(KEPT, HELPS)}, ""),
        ({1: Ways(CUT, HELPS), 2: Ways(CUT, HELPS)}, "--wait 8, STOPSIGNAL SIGINT"),
        ({1: Ways(CUT, USELESS), 2: Ways(CUT, USELESS)}, "no flag found"),
        ({1: Ways(KEPT, USELESS), 2: Ways(CUT, USELESS)}, "no flag found with 2 workers, kept with 1 worker"),
        (
            {1: Ways(CUT, HELPS), 2: Ways(CUT, USELESS), 4: Ways(CUT, USELESS)},
            "--wait 8, STOPSIGNAL SIGINT with 1 worker, no flag found with 2 and 4 workers",
        ),
        ({1: Ways(CUT)}, "no flag was tried"),
        ({1: Ways(None, HELPS)}, ""),
    ],
)
def test_only_what_turned_a_lost_request_into_a_kept_one_is_said_to_help(ways: dict[int, Ways], text: str) -> None:
    assert helped(ways, IN_FLIGHT) == text
    assert helped(ways, QUEUED) == text


ENDS = st.sampled_from(["answered", "cut", "reset", "ignored", "mixed"])
QUEUES = st.sampled_from(["answered", "at_once", "reset", "open"])
ENDINGS = st.builds(ending, ENDS, QUEUES) | st.none()
TUNED = st.builds(ending, ENDS, QUEUES, st.just("--wait 8")) | st.none()


@given(
    st.dictionaries(st.integers(1, 4), st.builds(Ways, ENDINGS, TUNED), max_size=3),
    st.sampled_from([IN_FLIGHT, QUEUED]),
)
def test_a_flag_is_named_exactly_where_it_helped(ways: dict[int, Ways], watched: Watched) -> None:
    lost = [way for way in ways.values() if way.default and not watched.kept(way.default)]
    assert ("--wait 8" in helped(ways, watched)) == any(way.tuned and watched.kept(way.tuned) for way in lost)
    assert bool(helped(ways, watched)) == bool(lost)


def test_a_request_that_waited_and_was_reset_is_told_beside_one_that_was_kept(tmp_path: Path) -> None:
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    engine = MemoryEngine({"gunicorn/sync": Behaviour(queued="reset")})
    _, records = run(Order(matrix, expand(matrix, "shutdown", only=("gunicorn/sync*",)), tmp_path), engine, print)
    overview, table, *_ = shutdown.shutdown_tables(RUN, records)
    assert overview.rows[0][2:] == (
        "kept", "kept", "dropped (reset)", "dropped (reset)", "queued request: no flag found",
    )  # fmt: skip
    assert [row[table.columns.index("queued request")] for row in table.rows] == ["reset", "reset"]
    assert any(line.startswith("No flag found that keeps the queued request: gunicorn/sync") for line in table.legend)


def test_records_of_before_the_queued_request_are_told_without_it(ran: tuple[RunFile, list[Record]]) -> None:
    _, records = ran
    overview, table, *_ = shutdown.shutdown_tables(RUN, [without_queued(record) for record in records])
    assert overview.columns[2:-1] == ("request in flight, 1 worker", "request in flight, 2 workers")
    assert {row[table.columns.index("queued request")] for row in table.rows} == {"—"}
    assert not any("queued request:" in line for line in table.legend[:-1])


def without_queued(record: Record) -> Record:
    """As it would have been written before there was a queued request."""
    found = record.model_dump()
    for case in found["shutdown"]["cases"]:
        del case["queued"], case["places"]
        for repetition in case["repetitions"]:
            del repetition["queued"]
    return Record.model_validate(found)


def test_the_overview_of_several_cases_has_a_column_for_each(tmp_path: Path) -> None:
    _, records = measured(tmp_path, "shutdown-cases", uvicorn="answered")
    assert shutdown.shutdown_tables(RUN, records)[0].columns[2:-1] == (
        "SIGINT, 1 worker", "second signal, 1 worker", "signal to the group, 1 worker", "longer than grace, 1 worker",
        "streamed answer, 1 worker",
    )  # fmt: skip


def test_conclusions_name_the_flag_that_keeps_a_request_or_say_that_none_was_found(
    ran: tuple[RunFile, list[Record]],
) -> None:
    _, records = ran
    told = shutdown.shutdown_tables(RUN, tuned_as(records, "daphne/twisted", "uvicorn/standard"))[1].legend[:3]
    assert [line.partition(":")[0] for line in told] == [
        "The request in flight is not lost by default",
        "The request in flight is not kept by default, but kept when tuned",
        "No flag found that keeps the request in flight",
    ]
    assert "daphne/twisted (dropped (cut); kept with" in told[1]
    assert "waitress/threads (ignored; with STOPSIGNAL SIGINT: ignored)" in told[2]
    assert "fastapi-cli/run (dropped (reset))" in told[2]


def test_a_timeline_has_request_signal_end_and_exit(ran: tuple[RunFile, list[Record]]) -> None:
    _, records = ran
    lines = {name_of(r): line(r.shutdown.cases[0].repetitions[0]) for r in records if r.shutdown}
    assert lines["uvicorn/standard"].startswith("r----S----")
    assert [lines[name].strip("·r-")[-2:] for name in ("uvicorn/standard", "daphne/twisted", "fastapi-cli/run")] == [
        "AE", "CE", "RE",
    ]  # fmt: skip
    assert lines["waitress/threads"].strip("·").endswith("-A")
    assert {len(text) for text in lines.values()} == {61}


def test_a_request_that_was_lost_once_is_not_drawn_as_kept(ran: tuple[RunFile, list[Record]]) -> None:
    _, records = ran
    sections = {name_of(r): r.shutdown for r in records if r.shutdown and not r.cell.tuned}
    kept, cut = (sections[name].cases[0] for name in ("uvicorn/standard", "daphne/twisted"))
    ends = [*kept.repetitions[:3], cut.repetitions[0]]
    mixed = kept.model_copy(update={"outcome": "mixed", "outcomes": {"answered": 3, "cut": 1}, "repetitions": ends})
    changed = [
        record.model_copy(update={"shutdown": record.shutdown.model_copy(update={"cases": [mixed]})})
        for record in records
        if record.shutdown and name_of(record) == "uvicorn/standard"
    ]
    assert all(ending.outcome == "cut" for panel in shutdown.timelines(changed) for _, ending in panel.rows)
    timelines = [sheet for sheet in shutdown.shutdown_tables(RUN, changed) if sheet.title.startswith("Timeline")]
    assert all("C" in row[-1] for sheet in timelines for row in sheet.rows)


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
    for suite, tables in (("startup", startup.startup_tables), ("deploy", deploy.deploy_tables)):
        order = Order(matrix, expand(matrix, suite, only=("waitress*",)), tmp_path / suite)
        _, records = run(order, engine, lambda _: None)
        missing = tables(RUN, records)[-1]
        assert ("waitress/threads", "not started", "no such option") in missing.rows
