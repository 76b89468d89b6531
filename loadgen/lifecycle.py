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
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic_ns
from typing import Any

from msgspec import Struct

from loadgen import proc
from loadgen.answer import Answer, Parser
from loadgen.client import Failure, Outgoing, connect, exchange
from loadgen.contract import (
    Begun,
    Call,
    Clock,
    Clocks,
    End,
    ErrorKind,
    Expect,
    Fate,
    Fates,
    Question,
    Signal,
    Signalled,
    Startup,
    Watch,
    Watched,
)
from loadgen.errors import ProtocolError, SpecError, StartupError
from loadgen.spec import checked_question

POLL_S = 0.0005


@dataclass(frozen=True)
class Asked:
    """A request on its way, and its right answer."""

    outgoing: Outgoing
    expect: Expect

    @classmethod
    def of(cls, question: Question, field: str) -> Asked:
        """Raises SpecError that names the field of a request that cannot be sent."""
        return cls(Outgoing(checked_question(question, field).request), question.expect)


def clock(_: Clock) -> Clocks:
    """This kernel's clocks, read together."""
    before, wall, after = monotonic_ns(), time.time_ns(), monotonic_ns()
    return Clocks(monotonic_ns=(before + after) // 2, wall_ns=wall)


def send_signal(call: Signal) -> Signalled:
    """Signal a process or its group, as `contract.Signal` says.

    Where the process is PID 1 of this namespace, it may take this one along: the answer then never comes.
    """
    number = getattr(signal, call.name)
    pids = _group(call.pid) if call.group else (call.pid,)
    sleep_until(call.at_ns)
    before = monotonic_ns()
    reached = sum([_kill(pid, number) for pid in pids])
    return Signalled(before_ns=before, after_ns=monotonic_ns(), processes=reached)


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
    def of(cls, call: Watch) -> Moments:
        """Those that a call means."""
        at, between = call.signal_ns, (call.lead_ns + call.queue_ns) // 2
        return cls(at - call.lead_ns, at - between, at - call.queue_ns, at, at + call.after_ns, call.until_ns)


def watch(call: Watch) -> Watched:
    """Watch five connections of a server around a signal, as `contract.Watch` says. Raises Failure, SpecError."""
    slow, quick, at = Asked.of(call.slow, "slow"), Asked.of(call.quick, "quick"), Moments.of(call)
    with contextlib.ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(5 + call.fill))
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
        for _ in range(call.fill):
            threads.submit(_fresh, slow, at.fill, at.until)
        received = _read_by_server(sock, at.signal)
        fates = Fates(**{name: future.result() for name, future in futures.items()})
    return Watched(received_ns=received, connections=fates)


def startup(call: Startup) -> Begun:
    """Ask a server that is about to start, as `contract.Startup` says.

    Raises StartupError where no right answer came in time, and SpecError.
    """
    asked, until = Asked.of(call.quick, "quick"), call.until_ns
    accepted: int | None = None
    error = "no connection"
    while monotonic_ns() < until:
        try:
            with _connected(asked, until) as sock:
                accepted = accepted or monotonic_ns()
                latency, keeps = _timed(sock, asked)
                answered = monotonic_ns()
                more = list(_timed_more(sock if keeps else None, asked, until))
            time.sleep(call.idle_ns / 1e9)
            return Begun(accepted_ns=accepted, answered_ns=answered, latencies_us=(latency, *more))
        except Failure as failure:
            error = str(failure)
        time.sleep(2 * POLL_S)
    raise StartupError(error)


def _timed(sock: socket.socket, asked: Asked) -> tuple[float, bool]:
    """µs to a right answer, and whether the connection is kept. Raises Failure."""
    began = monotonic_ns()
    answer = exchange(sock, asked.outgoing)
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
    answer = exchange(sock, asked.outgoing)
    if _right(answer, asked.expect) != "answered":
        raise SpecError(f"quick: the server answered {answer.status} {answer.body[:60]!r}")
    if answer.keep_alive:
        return sock
    sock.close()  # a server may wait for that, and serve nobody meanwhile
    return None


def _connected(asked: Asked, until: int) -> socket.socket:
    """Raises Failure."""
    return connect(asked.outgoing.address, _left(until))


def _left(until: int) -> float:
    """Seconds until a moment, never none."""
    return max(0.001, (until - monotonic_ns()) / 1e9)


def converse(sock: socket.socket, asked: Asked, until: int) -> Fate:
    """Ask on a connection and follow the answer to its end. The connection is closed where it is not kept."""
    parser = Parser(asked.outgoing.request.method)
    end: End | None = None
    sent, first, size, status, keeps = monotonic_ns(), None, 0, None, False
    try:
        sock.sendall(asked.outgoing.wire())
        while end is None:
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


def _right(answer: Answer, expect: Expect) -> End:
    if answer.status != expect.status:
        return "status"
    return "answered" if expect.body in (None, answer.body) else "wrong_body"


def idle(sock: socket.socket | None, until: int) -> Fate:
    """Wait for the other side to end a connection on which nothing is asked."""
    if sock is None:
        return Fate("not_kept", monotonic_ns())
    end: End | None = None
    size = 0
    while end is None:
        try:
            sock.settimeout(_left(until))
            size += len(data := sock.recv(65536))
            end = None if data else "closed"
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
        return Fate(_UNCONNECTED[failure.kind], monotonic_ns())


_UNCONNECTED: Mapping[ErrorKind, End] = {
    "refused": "refused",
    "timeout": "open",
    "reset": "reset",
    "protocol": "protocol",
}
"""The ends of connections that could not be made."""


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


OPERATIONS: Mapping[type[Call[Any]], Callable[[Any], Struct]] = {
    Clock: clock,
    Signal: send_signal,
    Startup: startup,
    Watch: watch,
}
