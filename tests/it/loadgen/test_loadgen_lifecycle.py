"""The operations `clock`, `signal`, `startup`, `watch` and `steady`, on servers of a few lines."""

from __future__ import annotations

import base64
import os
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic_ns
from typing import Any

import pytest
from documents import ask as ask_agent

from loadgen.proc import available

MS = 1_000_000
MOMENTS = ("signal_ns", "until_ns", "lead_ns", "queue_ns", "after_ns")
ITEM = b'{"item_id":42,"q":null}'
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 23\r\n\r\n" + ITEM
CLOSING = WHOLE.replace(b"OK\r\n", b"OK\r\nconnection: close\r\n")
Behaviour = Callable[[socket.socket], None]


def ask(op: str, **fields: Any) -> dict[str, Any]:
    return ask_agent(op=op, **fields)


def asked(port: int, path: str = "/items/42") -> dict[str, Any]:
    body = base64.b64encode(ITEM).decode()
    return {"request": {"url": f"http://127.0.0.1:{port}{path}", "timeout_s": 1}, "expect": {"body": body}}


@contextmanager
def served(slow: Behaviour | None = None, whole: bytes = WHOLE, port: int = 0) -> Iterator[int]:
    """The port of a server that answers at once, but /slow as it is told."""

    def converse(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while request := connection.recv(65536):
                if b"/slow" in request and slow:
                    slow(connection)
                else:
                    connection.sendall(whole)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=converse, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", port)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def watched(port: int, fill: int = 0) -> dict[str, Any]:
    signal_ns = monotonic_ns() + 80 * MS
    moments = {"signal_ns": signal_ns, "until_ns": signal_ns + 120 * MS, "lead_ns": 20 * MS, "after_ns": 20 * MS}
    asks = {"slow": asked(port, "/slow"), "quick": asked(port), "queue_ns": 10 * MS, "fill": fill}
    return ask("watch", **asks, **moments) | {"signal_ns": signal_ns}


@contextmanager
def served_in_turn(ends_after: int | None = None) -> Iterator[int]:
    """The port of a server that serves one connection at a time, /slow for 60 ms; it may end after so many answers."""

    def serve() -> None:
        served_ = 0
        with suppress(OSError):
            while ends_after is None or served_ < ends_after:
                connection, _ = listener.accept()
                with connection:
                    request = connection.recv(65536)
                    time.sleep(0.06 if b"/slow" in request else 0)
                    connection.sendall(CLOSING)
                served_ += 1
        listener.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def later(data: bytes, end: Callable[[socket.socket], None]) -> Behaviour:
    """Send so much of an answer after 60 ms, then do something to the connection."""

    def slow(connection: socket.socket) -> None:
        time.sleep(0.06)
        connection.sendall(data)
        end(connection)

    return slow


def _close(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _nothing(_connection: socket.socket) -> None:
    pass


@pytest.mark.parametrize(
    ("slow", "end", "size"),
    [
        (later(WHOLE, _nothing), "answered", len(WHOLE)),
        (later(WHOLE.replace(b"42", b"43"), _nothing), "wrong_body", len(WHOLE)),
        (later(WHOLE.replace(b"200 OK", b"503 No"), _nothing), "status", len(WHOLE)),
        (later(WHOLE[:-3], _close), "cut", len(WHOLE) - 3),
        (later(b"", _close), "cut", 0),
        (later(b"", _reset), "reset", 0),
        (later(b"220 smtp\r\n\r\n", _nothing), "protocol", 12),
        (later(b"", _nothing), "open", 0),
    ],
)
def test_watch_tells_the_fate_of_the_request_in_flight(slow: Behaviour, end: str, size: int) -> None:
    with served(slow) as port:
        found = watched(port)
    fates = found["connections"]
    assert (fates["slow"]["end"], fates["slow"]["bytes"]) == (end, size)
    assert fates["slow"]["sent_ns"] < found["signal_ns"] < fates["slow"]["end_ns"]
    assert [fates[name]["end"] for name in ("idle", "kept", "new")] == ["open", "answered", "answered"]
    if available():
        assert fates["slow"]["sent_ns"] < found["received_ns"]


def test_a_request_behind_one_that_takes_the_only_place_waits_for_it() -> None:
    with served_in_turn() as port:
        found = watched(port)
    slow, queued = found["connections"]["slow"], found["connections"]["queued"]
    assert (slow["end"], queued["end"]) == ("answered", "answered")
    assert queued["sent_ns"] < found["signal_ns"] < slow["end_ns"] < queued["end_ns"]


def test_a_request_that_waits_in_the_backlog_of_a_server_that_ends_is_reset() -> None:
    with served_in_turn(ends_after=3) as port:  # two connections that are not kept, and the slow request
        fates = watched(port)["connections"]
    assert (fates["slow"]["end"], fates["queued"]["end"]) == ("answered", "reset")


def test_a_server_that_lacks_no_place_answers_before_the_signal() -> None:
    with served(later(WHOLE, _nothing)) as port:
        found = watched(port, fill=3)
    queued = found["connections"]["queued"]
    assert queued["end"] == "answered"
    assert queued["end_ns"] < found["connections"]["slow"]["end_ns"]


@pytest.mark.parametrize("fill", [0, 1, 3])
def test_as_many_slow_requests_as_told_are_in_flight(fill: int) -> None:
    asked_for: list[int] = []

    def slow(connection: socket.socket) -> None:
        asked_for.append(1)
        later(WHOLE, _nothing)(connection)

    with served(slow) as port:
        assert watched(port, fill)["connections"]["slow"]["end"] == "answered"
    assert len(asked_for) == 1 + fill


def test_watch_sees_connections_that_are_not_kept() -> None:
    with served(later(WHOLE, _nothing), CLOSING) as port:
        fates = watched(port)["connections"]
    assert [fates[name]["end"] for name in ("slow", "idle", "kept", "new")] == [
        "answered", "not_kept", "not_kept", "answered",
    ]  # fmt: skip


def test_watch_refuses_a_server_that_answers_wrong_at_first() -> None:
    with served(whole=WHOLE.replace(b"42", b"43")) as port:
        found = watched(port)
    assert (found["ok"], found["error"]["kind"]) == (False, "spec")


def test_clock_is_this_kernels() -> None:
    before, wall, found, after = monotonic_ns(), time.time_ns(), ask("clock"), monotonic_ns()
    assert before <= found["monotonic_ns"] <= after
    assert found["wall_ns"] >= wall


@pytest.mark.parametrize(("group", "least"), [(False, 1), (True, 2)])
def test_signal_is_sent_at_its_time(group: bool, least: int) -> None:
    with subprocess.Popen(["sh", "-c", "sleep 9 & wait"], start_new_session=True, stdout=subprocess.PIPE) as process:
        time.sleep(0.05)  # its child is started
        at = monotonic_ns() + 10 * MS
        found = ask("signal", pid=process.pid, name="SIGTERM", at_ns=at, group=group)
        assert process.wait() == -15
        if not group:
            os.killpg(process.pid, 15)
    assert at <= found["before_ns"] <= found["after_ns"]
    assert found["processes"] >= (least if available() else 1)


def test_signal_to_a_process_that_is_gone_reaches_nobody() -> None:
    with subprocess.Popen(["true"]) as process:
        pass
    assert ask("signal", pid=process.pid, name="SIGTERM", at_ns=0)["processes"] == 0


@pytest.mark.parametrize(
    ("op", "fields", "field"),
    [
        ("signal", {"pid": 0, "name": "SIGTERM", "at_ns": 0}, "pid"),
        ("signal", {"pid": 1, "name": "SIGFOO", "at_ns": 0}, "name"),
        ("signal", {"pid": 2**22, "name": "SIGTERM"}, "at_ns"),
        ("watch", {}, "slow"),
        ("watch", {"slow": asked(1), "quick": {"request": {}}}, "request"),
        ("watch", {"slow": asked(1), "quick": asked(1)}, "signal_ns"),
        ("watch", {"slow": asked(1), "quick": asked(1), **dict.fromkeys(MOMENTS, 1), "fill": -1}, "fill"),
        ("startup", {"quick": asked(1)}, "until_ns"),
        ("steady", {"targets": []}, "targets"),
        ("steady", {"targets": [asked(1)], "begin_ns": 0, "end_ns": 1, "rate": 0}, "rate"),
    ],
)
def test_nonsense_is_refused_with_its_field(op: str, fields: dict[str, Any], field: str) -> None:
    found = ask(op, **fields)
    assert (found["ok"], found["error"]["kind"]) == (False, "spec")
    assert field in found["error"]["message"]


@pytest.mark.parametrize("whole", [WHOLE, CLOSING])
def test_startup_waits_for_a_server_to_come(whole: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    came: list[int] = []

    def come() -> None:
        time.sleep(0.05)
        came.append(monotonic_ns())
        with served(whole=whole, port=port):
            time.sleep(0.3)

    thread = threading.Thread(target=come)
    thread.start()
    found = ask("startup", quick=asked(port), until_ns=monotonic_ns() + 1_000 * MS)
    thread.join()
    assert came[0] <= found["accepted_ns"] <= found["answered_ns"]
    assert len(found["latencies_us"]) == 10


def test_startup_gives_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    found = ask("startup", quick=asked(port), until_ns=monotonic_ns() + 20 * MS)
    assert (found["ok"], found["error"]["kind"]) == (False, "startup")
    assert "refused" in found["error"]["message"]


def test_steady_counts_a_wrong_answer_on_a_kept_connection() -> None:
    begin = monotonic_ns()
    with served(whole=WHOLE.replace(b"200 OK", b"503 No")) as port:
        found = ask("steady", targets=[asked(port)], rate=200, begin_ns=begin, end_ns=begin + 20 * MS)
    assert [kind for *_, kind in found["requests"]] == ["status"] * 4


@pytest.mark.parametrize("whole", [WHOLE, CLOSING])
def test_steady_moves_to_the_second_target_and_counts_each_request(whole: bytes) -> None:
    begin = monotonic_ns() + 20 * MS
    with socket.create_server(("127.0.0.1", 0)) as probe:
        nobody = probe.getsockname()[1]
    with served(whole=whole) as port:
        found = ask(
            "steady", targets=[asked(port), asked(nobody)], rate=200, begin_ns=begin, end_ns=begin + 200 * MS,
            switch_ns=begin + 100 * MS, connections=4,
        )  # fmt: skip
    assert [due for due, *_ in found["requests"]] == list(range(begin, begin + 200 * MS, 5 * MS))
    assert all(kind == ("" if due < begin + 100 * MS else "refused") for due, _, kind in found["requests"])
    assert all(end >= due for due, end, _ in found["requests"])
