"""What cannot work is found out in the first round, told at once, and not started again; the others go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.engines.ends import Exit
from orchestrator.engines.memory import Behaviour, MemoryEngine, MemoryServer
from orchestrator.engines.protocol import Launch, Seat
from orchestrator.evidence.model import Record
from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.pipeline import Order, run
from orchestrator.probes import checks
from orchestrator.probes.events import Event, LaunchFailed, ServersUp, SliceDone
from tests.unit.loads import FLAWLESS
from tests.unit.probes.conftest import MATRIX

WAITRESS = "waitress/threads"
ROUNDS, SLICES = 2, 2
NULL_SERVERS = 1


class Changing(MemoryEngine):
    """Behaves in another way from the second start of a server on."""

    def __init__(self, first: Mapping[str, Behaviour], later: Mapping[str, Behaviour]) -> None:
        super().__init__(first)
        self._later = MemoryEngine(later)
        self.starts: list[str] = []

    def start(self, launch: Launch, seat: Seat | None = None) -> MemoryServer:
        self.starts.append(launch.variant.name)
        again = self.starts.count(launch.variant.name) > 1
        return self._later.start(launch, seat) if again else super().start(launch, seat)


def smoke(folder: Path, engine: MemoryEngine, *, resume: bool = False) -> tuple[dict[str, Record], list[Event]]:
    told: list[Event] = []
    _, records = run(Order(MATRIX, expand(MATRIX, "smoke"), folder, 1, resume), engine, told.append)
    return {record.cell.server: record for record in records}, told


def body(status: int, content: bytes) -> Mapping[str, tuple[int, bytes]]:
    return {"/items/42": (status, content)}


CANNOT_WORK: dict[str, tuple[Behaviour, str, str]] = {
    "it does not start": (Behaviour(start_error="no module"), "not_started", "no module"),
    "it answers 500": (
        Behaviour(answers=body(500, b"Oops")), "check_failed",
        "/items/42: status 500 Internal Server Error, body b'Oops'",
    ),
    "another body": (
        Behaviour(answers=body(200, b'{"item_id": 42}')), "check_failed",
        """/items/42: status 200, body b'{"item_id": 42}', not b'{"item_id":42,"q":null}'""",
    ),
    "a long body": (
        Behaviour(answers=body(200, b'{"item_id":42,' + b"x" * 200)), "check_failed",
        "/items/42: status 200, body of 214 bytes, not 23; from byte 14 on "
        "b'" + 40 * "x" + """', not b'"q":null}'""",
    ),
    "no /items": (Behaviour(answers=body(404, b"")), "check_failed", "docs/apps.md lists what an app answers"),
    "no /fingerprint": (
        Behaviour(answers={"/fingerprint": (404, b"Not Found")}), "check_failed",
        "/fingerprint: status 404 Not Found, body b'Not Found'; docs/apps.md lists what an app answers",
    ),
    "a fingerprint that is a list": (
        Behaviour(answers={"/fingerprint": (200, b"[]")}), "check_failed",
        "/fingerprint: Input should be an object in body b'[]'; docs/apps.md says what an app tells there",
    ),
    "a fingerprint that is null": (Behaviour(answers={"/fingerprint": (200, b"null")}), "check_failed", "body b'null'"),
    "a fingerprint that is no JSON": (
        Behaviour(answers={"/fingerprint": (200, b"<html>")}), "check_failed", "/fingerprint: Invalid JSON"
    ),
    "a fingerprint with a list for a server": (
        Behaviour(fingerprint={"server": ["waitress"]}), "check_failed",
        "/fingerprint: server: Input should be a valid string",
    ),
    "it is another": (
        Behaviour(fingerprint={"server": "gunicorn"}), "check_failed",
        "not as declared: server is gunicorn, declared waitress (fix the entry's options or what it declares)",
    ),
    "it logs": (Behaviour(access_log=True), "check_failed", "access_log is True, declared False"),
    "it closes": (Behaviour(keepalive=False), "check_failed", "keepalive is False, declared True"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "REST_S", 0.002)


@pytest.mark.parametrize("name", CANNOT_WORK)
def test_what_cannot_work_is_told_at_once_and_not_started_again(name: str, tmp_path: Path) -> None:
    behaviour, outcome, words = CANNOT_WORK[name]
    engine = Changing({WAITRESS: behaviour}, {})
    records, told = smoke(tmp_path, engine)
    failed = records["waitress"]
    assert (failed.outcome, len(failed.rounds), failed.summary) == (outcome, 1, None)
    assert failed.reason
    assert words in failed.reason.line
    assert engine.starts.count(WAITRESS) == 1
    assert len(records["uvicorn"].rounds) == ROUNDS
    (event,) = [event for event in told if isinstance(event, LaunchFailed)]
    assert (event.round, event.given_up, event.reason) == (1, True, failed.reason.line)
    assert told.index(event) < min(at for at, event in enumerate(told) if isinstance(event, SliceDone))


@pytest.mark.parametrize("name", ["it does not start", "it is another"])
def test_a_resumed_run_leaves_it_alone_too(name: str, tmp_path: Path) -> None:
    class Interrupted(Changing):
        def start(self, launch: Launch, seat: Seat | None = None) -> MemoryServer:
            if len(self.starts) > NULL_SERVERS + 1:
                raise KeyboardInterrupt
            return super().start(launch, seat)

    behaviour, outcome, _ = CANNOT_WORK[name]
    with pytest.raises(KeyboardInterrupt):
        smoke(tmp_path, Interrupted({WAITRESS: behaviour}, {}))
    engine = Changing({}, {})
    records, _ = smoke(tmp_path, engine, resume=True)
    assert records["waitress"].outcome == outcome
    assert WAITRESS not in engine.starts
    assert [len(records[name].rounds) for name in ("waitress", "uvicorn")] == [1, ROUNDS]


def test_the_fingerprint_of_what_is_not_as_declared_is_on_record(tmp_path: Path) -> None:
    records, _ = smoke(tmp_path, MemoryEngine({WAITRESS: Behaviour(fingerprint={"parser": "h11", "extra": [1]})}))
    (round_,) = records["waitress"].rounds
    assert [(m["field"], m["found"]) for m in round_.mismatches] == [("parser", "h11")]
    assert round_.fingerprint
    assert (round_.fingerprint["parser"], round_.fingerprint["extra"]) == ("h11", [1])


def test_a_mismatch_that_appears_later_is_a_verdict(tmp_path: Path) -> None:
    records, told = smoke(tmp_path, Changing({}, {WAITRESS: Behaviour(fingerprint={"parser": "slow"})}))
    (verdict,) = records["waitress"].verdicts
    assert (verdict.rule, verdict.effect) == ("undeclared_config", "unranked")
    assert verdict.text == "parser is slow, declared waitress"
    assert not [event for event in told if isinstance(event, LaunchFailed)]


def test_a_start_that_fails_later_is_told_and_tried_again(tmp_path: Path) -> None:
    records, told = smoke(tmp_path, Changing({}, {WAITRESS: Behaviour(start_error="port in use")}))
    assert [event for event in told if isinstance(event, LaunchFailed)] == [
        LaunchFailed(2, "waitress/threads·slim·wheel·py3.13·raw-wsgi·w1·t4", "port in use", given_up=False)
    ]
    assert [verdict.rule for verdict in records["waitress"].verdicts] == ["mixed"]


def test_what_is_said_to_be_up_is_up(tmp_path: Path) -> None:
    _, told = smoke(tmp_path, MemoryEngine({WAITRESS: Behaviour(answers=body(500, b""))}))
    first = [(event.up, event.failed, event.total) for event in told if isinstance(event, ServersUp)]
    assert {(1, 1, 2), (1, 0, 1)} <= set(first)
    assert all(up < 2 for up, _, _ in first)


def test_the_slices_of_what_is_given_up_are_not_waited_for(tmp_path: Path) -> None:
    _, told = smoke(tmp_path, MemoryEngine({WAITRESS: Behaviour(start_error="no module")}))
    counts = [(event.done, event.total) for event in told if isinstance(event, SliceDone)]
    assert counts[-1] == (3 * SLICES, 3 * SLICES)


def test_where_nothing_works_the_run_ends_after_its_first_round(tmp_path: Path) -> None:
    broken = Behaviour(start_error="no module")
    engine = Changing({WAITRESS: broken, "uvicorn/standard": broken}, {})
    records, _ = smoke(tmp_path, engine)
    assert {record.outcome for record in records.values()} == {"not_started"}
    assert len(engine.starts) == NULL_SERVERS + 2


def test_with_a_precision_it_is_left_alone(tmp_path: Path) -> None:
    selection = expand(MATRIX, "smoke")
    wanted = replace(selection, schedule=selection.schedule.model_copy(update={"precision": 1e-6, "max_rounds": 4}))
    engine = Changing({WAITRESS: Behaviour(start_error="no module")}, {})
    run(Order(MATRIX, wanted, tmp_path, 1), engine, lambda _: None)
    assert engine.starts.count(WAITRESS) == 1


def test_a_workload_that_is_answered_wrongly_fails_no_other(tmp_path: Path) -> None:
    text = (ROOT / "tests" / "cases" / "small.matrix.yaml").read_text()
    text = text.replace("  item:", "  large: {path: /bytes/500, expect_bytes: 500}\n  item:")
    text = text.replace("connections: [8, 32]", "workload: [item, large], connections: [8, 32]")
    (tmp_path / "matrix.yaml").write_text(text)
    matrix = load_matrix(tmp_path / "matrix.yaml").matrix
    engine = MemoryEngine({WAITRESS: Behaviour(answers={"/bytes/500": (200, b"x" * 499)})})
    _, records = run(Order(matrix, expand(matrix, "quick"), tmp_path / "run", 1), engine, lambda _: None)
    assert {record.cell.workload: record.outcome for record in records} == {
        "item": "measured", "large": "check_failed",
    }  # fmt: skip
    assert {record.cell.workload: len(record.rounds) for record in records} == {"item": ROUNDS, "large": 1}


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (Exit(137, 0, out_of_memory=True), "the server ended with exit code 137 (killed: out of memory)"),
        (Exit(139, 0), "the server ended with exit code 139 (signal SIGSEGV)"),
        (Exit(3, 0), "the server ended with exit code 3"),
    ],
)
def test_a_server_that_dies_under_load_is_not_the_load_generators_end(end: Exit, words: str, tmp_path: Path) -> None:
    records, _ = smoke(tmp_path, MemoryEngine({WAITRESS: Behaviour(dies=end)}))
    failed = records["waitress"]
    assert failed.outcome == "load_failed"
    assert failed.reason
    assert failed.reason.line == words
    assert len(failed.rounds) == ROUNDS


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
GOOD: dict[str, dict[str, Any]] = {
    "wait": {"ok": True, "attempts": 1, "connect_s": 0.1, "seconds": 0.1, "answer": None, "error": None},
    "fetch": {"ok": True, "answers": [{"status": 200, "body": "", "headers": []}]},
    "sample": {"ok": True, "sample": {**FLAWLESS["server"], "wanting": 0}},
    "load": {"ok": True, "result": FLAWLESS},
}


@pytest.mark.parametrize("op", GOOD)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_answer_of_the_agent_with_other_fields_fails_its_cell_only(
    op: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the load generator says of single requests: a sentence on the cell's record, never a traceback."""
    field = data.draw(st.sampled_from(sorted(GOOD[op])))
    broken = {**GOOD[op], field: data.draw(JSON)} if data.draw(st.booleans()) else data.draw(st.just({}))
    engine = MemoryEngine({WAITRESS: Behaviour(agent={op: json.dumps(broken)})})
    records, _ = smoke(tmp_path_factory.mktemp("run"), engine)
    assert records["uvicorn"].outcome == "measured"
    assert records["waitress"].reason is None or records["waitress"].reason.line
