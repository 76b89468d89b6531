"""The start and the end of a server as its clients see them, and the signal that brings the end about.

All times are CLOCK_MONOTONIC in ns. Agents of one kernel share it, whatever namespaces they are in, so that what one
sees on a socket and when another sends a signal can be compared.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from time import monotonic_ns

from loadgen import proc, spec
from loadgen.answer import Answer, Parser
from loadgen.client import Failure, Request, connect, exchange, request_from_json
from loadgen.errors import ProtocolError, SpecError
from loadgen.spec import Expect, Json

POLL_S = 0.0005
SIGNALS = ("SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGKILL")
MOMENT = spec.number(0, kind=int)
FILL = spec.number(0, 4095, kind=int)


@dataclass(frozen=True)
class Fate:
    """What became of a connection. `end`: answered, status, wrong_body, protocol, cut (closed before the answer was
    whole), closed (nothing was asked), reset, refused, open (until watching ended) or not_kept (closed at once)."""

    end: str
    end_ns: int
    sent_ns: int | None = None
    first_byte_ns: int | None = None
    bytes: int = 0
    status: int | None = None
    kept: bool = False  # after a whole answer: for more requests


@dataclass(frozen=True)
class Asked:
    """A request and its right answer."""

    request: Request
    expect: Expect

    @classmethod
    def from_json(cls, field: str, doc: object) -> Asked:
        """Raises SpecError."""
        if not isinstance(doc, dict):
            raise SpecError(f"{field}: not an object with request and expect")
        return cls(request_from_json(doc.get("request")), spec.EXPECT(f"{field}.expect", doc.get("expect", {})))


def clock(_doc: Json) -> Json:
    """This kernel's clocks, read together."""
    before, wall, after = monotonic_ns(), time.time_ns(), monotonic_ns()
    return {"ok": True, "monotonic_ns": (before + after) // 2, "wall_ns": wall}


def send_signal(doc: Json) -> Json:
    """Signal `pid`, or all of its process group, at `at_ns`: the moments before and after kill(2).

    Where the process is PID 1 of this namespace, it may take this one along: the answer then never comes.
    """
    pid = spec.number(1, kind=int)("pid", doc.get("pid"))
    name = doc.get("name")
    if name not in SIGNALS:
        raise SpecError(f"name: {name!r:.40} is none of {', '.join(SIGNALS)}")
    group = spec.flag("group", doc.get("group", False))
    number = getattr(signal, name)
    pids = _group(pid) if group else (pid,)
    sleep_until(MOMENT("at_ns", doc.get("at_ns")))
    before = monotonic_ns()
    reached = sum([_kill(pid, number) for pid in pids])
    return {"ok": True, "before_ns": before, "after_ns": monotonic_ns(), "processes": reached}


def _kill(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _group(pid: int) -> tuple[int, ...]:
    """The members of a process's group. killpg(2) cannot reach group 1: kill(-1) means everybody."""
    if not proc.available():
        return (-os.getpgid(pid),)
    return proc.group(pid)


@dataclass(frozen=True)
class Moments:
    """When the connections of `watch` are used, and until when they are watched."""

    slow: int
    fill: int
    queued: int
    signal: int
    after: int
    until: int

    @classmethod
    def from_json(cls, doc: Json) -> Moments:
        """Raises SpecError."""
        signal, until, lead, queue, after = (
            MOMENT(name, doc.get(name)) for name in ("signal_ns", "until_ns", "lead_ns", "queue_ns", "after_ns")
        )
        return cls(signal - lead, signal - (lead + queue) // 2, signal - queue, signal, signal + after, until)


def watch(doc: Json) -> Json:
    """Watch five connections of a server around a signal that is sent at `signal_ns`, at most until `until_ns`.

    `slow` is asked `lead_ns` before the signal, so that it is in flight. `fill` more connections then ask for the same,
    so that nothing is left that could serve; behind them one is `queued`: it asks for `quick` `queue_ns` before the
    signal. Two connections have been kept after an answer to `quick`: one stays idle, the other asks again `after_ns`
    after the signal, when a new one asks too. `received_ns`: when the server had read the whole of `slow` from its
    socket, at most `signal_ns`; null where the kernel does not tell.
    """
    slow, quick = Asked.from_json("slow", doc.get("slow")), Asked.from_json("quick", doc.get("quick"))
    at, fill = Moments.from_json(doc), FILL("fill", doc.get("fill"))
    with contextlib.ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(5 + fill))
        silent, kept = (_kept(quick, at.signal, stack) for _ in range(2))
        sleep_until(at.slow)
        sock = stack.enter_context(_connected(slow, at.until))
        futures: dict[str, Future[Fate]] = {
            "slow": threads.submit(converse, sock, slow, at.until),
            "idle": threads.submit(idle, silent, at.until),
            "queued": threads.submit(_fresh, quick, at.queued, at.until),
            "kept": threads.submit(_again, kept, quick, at.after, at.until),
            "new": threads.submit(_fresh, quick, at.after, at.until),
        }
        for _ in range(fill):
            threads.submit(_fresh, slow, at.fill, at.until)
        received = _read_by_server(sock, at.signal)
        fates = {name: asdict(future.result()) for name, future in futures.items()}
    return {"ok": True, "received_ns": received, "connections": fates}


def startup(doc: Json) -> Json:
    """Ask a server that is about to start until it answers right, at most until `until_ns`; then nine times more.

    It is then left alone for `idle_ns`, before this returns. `accepted_ns`: when a connection was first made;
    `latencies_us`: of ten answers, each from its own sending.
    """
    asked, until = Asked.from_json("quick", doc.get("quick")), MOMENT("until_ns", doc.get("until_ns"))
    idle_ns = MOMENT("idle_ns", doc.get("idle_ns", 0))
    accepted: int | None = None
    error = "no connection"
    while monotonic_ns() < until:
        try:
            with _connected(asked, until) as sock:
                accepted = accepted or monotonic_ns()
                latency, keeps = _timed(sock, asked)
                answered = monotonic_ns()
                more = list(_timed_more(sock if keeps else None, asked, until))
            time.sleep(idle_ns / 1e9)
            return {"ok": True, "accepted_ns": accepted, "answered_ns": answered, "latencies_us": [latency, *more]}
        except Failure as failure:
            error = str(failure)
        time.sleep(2 * POLL_S)
    return {"ok": False, "error": {"kind": "startup", "message": error}}


def _timed(sock: socket.socket, asked: Asked) -> tuple[float, bool]:
    """µs to a right answer, and whether the connection is kept. Raises Failure."""
    began = monotonic_ns()
    answer = exchange(sock, asked.request)
    if _right(answer, asked.expect) != "answered":
        raise Failure("status", f"status {answer.status}: {answer.body[:60]!r}")
    return (monotonic_ns() - began) / 1000, answer.keep_alive


def _timed_more(kept: socket.socket | None, asked: Asked, until: int) -> Iterator[float]:
    """Nine more answers, on the kept connection or each on a new one. Raises Failure."""
    for _ in range(9):
        with contextlib.nullcontext(kept) if kept else _connected(asked, until) as sock:
            yield _timed(sock, asked)[0]


def _kept(asked: Asked, until: int, stack: contextlib.ExitStack) -> socket.socket | None:
    """A connection after one answer; None where the server does not keep it. Raises Failure, SpecError."""
    sock = stack.enter_context(_connected(asked, until))
    answer = exchange(sock, asked.request)
    if _right(answer, asked.expect) != "answered":
        raise SpecError(f"quick: the server answered {answer.status} {answer.body[:60]!r}")
    if answer.keep_alive:
        return sock
    sock.close()  # a server may wait for that, and serve nobody meanwhile
    return None


def _connected(asked: Asked, until: int) -> socket.socket:
    """Raises Failure."""
    return connect(asked.request.address, _left(until))


def _left(until: int) -> float:
    """Seconds until a moment, never none."""
    return max(0.001, (until - monotonic_ns()) / 1e9)


def converse(sock: socket.socket, asked: Asked, until: int) -> Fate:
    """Ask on a connection and follow the answer to its end. The connection is closed where it is not kept."""
    parser = Parser(asked.request.method)
    sent, first, size, end, status, keeps = monotonic_ns(), None, 0, "", None, False
    try:
        sock.sendall(asked.request.wire())
        while not end:
            sock.settimeout(_left(until))
            data = sock.recv(65536)
            size += len(data)
            first = first or (monotonic_ns() if data else None)
            answer = parser.feed(data)
            if answer is not None:
                end, status, keeps = _right(answer, asked.expect), answer.status, answer.keep_alive
    except ProtocolError:
        end = "protocol" if data else "cut"
    except TimeoutError:
        end = "open"
    except OSError:
        end = "reset"
    fate = Fate(end, monotonic_ns(), sent, first, size, status, keeps)
    if not keeps:
        sock.close()
    return fate


def _right(answer: Answer, expect: Expect) -> str:
    if answer.status != expect.status:
        return "status"
    return "answered" if expect.body in (None, answer.body) else "wrong_body"


def idle(sock: socket.socket | None, until: int) -> Fate:
    """Wait for the other side to end a connection on which nothing is asked."""
    if sock is None:
        return Fate("not_kept", monotonic_ns())
    size, end = 0, ""
    while not end:
        try:
            sock.settimeout(_left(until))
            size += len(data := sock.recv(65536))
            end = "" if data else "closed"
        except TimeoutError:
            end = "open"
        except OSError:
            end = "reset"
    return Fate(end, monotonic_ns(), bytes=size)


def _again(sock: socket.socket | None, asked: Asked, at: int, until: int) -> Fate:
    """Ask once more on a kept connection, unless it is seen to be closed by then."""
    gone = idle(sock, min(at, until))
    return gone if sock is None or gone.end != "open" else converse(sock, asked, until)


def _fresh(asked: Asked, at: int, until: int) -> Fate:
    """Ask on a new connection."""
    sleep_until(at)
    try:
        with _connected(asked, until) as sock:
            return converse(sock, asked, until)
    except Failure as failure:
        return Fate({"timeout": "open"}.get(failure.kind, failure.kind), monotonic_ns())


def _read_by_server(sock: socket.socket, until: int) -> int | None:
    """When the server's end of a connection has nothing left to read, from the kernel's table of sockets; else `until`.

    None where there is no such table.
    """
    own, server = sock.getsockname()[1], sock.getpeername()[1]
    while monotonic_ns() < until:
        if not proc.available():
            return None
        if proc.unread(server, own) == 0:
            return monotonic_ns()
        time.sleep(POLL_S)
    return until


def sleep_until(at: int) -> None:
    """Sleep until the clock shows `at`; the last stretch awake, since a sleep may overrun by a tenth of a ms."""
    while (left := at - monotonic_ns()) > 0:
        if left > 1_000_000:
            time.sleep((left - 500_000) / 1e9)


OPERATIONS = {"clock": clock, "signal": send_signal, "startup": startup, "watch": watch}
