"""The connections of one slice, and everything about them that is not the hot loop."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from time import perf_counter_ns
from typing import Protocol

from loadgen.answer import MAX_BODY, Answer, Parser
from loadgen.contract import ErrorKind, FirstError
from loadgen.errors import ProtocolError
from loadgen.exchange import Exchange
from loadgen.tally import Silent, Tally
from loadgen.wires import Wires

MAX_READ = 65536
SLACK = 65536  # bytes that a wrong body may be longer than the right one before reading stops
PAUSE_NS = 10_000_000  # before a connection that failed is opened again
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"})


class Mode(Protocol):
    """How requests come to the connections of a pool."""

    due: dict[int, int]
    """By connection: when its request in flight was due. Its latency and its time limit count from then."""

    scheduled: bool
    """Whether requests are due by a schedule of their own.

    Then the time from sending to answer is counted apart, and a refused connection is no lost request by itself.
    """

    free: Callable[[int, int], None]
    """What a connection without a request does next, at a time."""


class Closed:
    """A closed loop: a connection asks again as soon as it is answered, so that a request is due when it is sent."""

    scheduled = False

    def __init__(self, pool: Pool) -> None:
        self.due = pool.started
        self.free: Callable[[int, int], None] = pool.begin


class Pool:
    """Per file descriptor: which exchange is in flight, since when, and what came of its answer so far.

    `held` has an entry while an answer is incomplete, or is to be looked at more closely.
    """

    def __init__(self, wires: Wires, exchanges: list[Exchange], timeout_s: float) -> None:
        self.wires = wires
        self.exchange: dict[int, Exchange] = {}
        self.started: dict[int, int] = {}  # when the request in flight was sent
        self.held: dict[int, bytes] = {}
        self.idle: dict[int, int] = {}  # connections without a request, and since when; longest first
        self.tally = Tally()
        self.counted_from = 0  # requests due before this time count nowhere
        self.read_size = MAX_READ
        self.unreachable = False  # the latest connection was refused, and none was answered since
        self._parsers: dict[int, Parser] = {}
        self._fresh: set[int] = set()  # connections without an answer so far
        self._down: list[tuple[int, Exchange, int | None]] = []  # to be opened again: when, for what, asked since
        self._asked: dict[int, int] = {}  # connections that replace one without an answer: when that one was asked
        self._exchanges = exchanges
        self._timeout_ns = int(timeout_s * 1e9)
        self.enter(Closed(self))

    def enter(self, mode: Mode) -> None:
        """Let requests come so, from before any connection is opened."""
        self.mode = mode
        self.due = mode.due

    def open_all(self, connections: int) -> None:
        """Open the slice's connections, the exchanges dealt out in turn."""
        for i in range(connections):
            self.open(self._exchanges[i % len(self._exchanges)], perf_counter_ns())

    def open(self, exchange: Exchange, now: int, asked: int | None = None) -> None:
        """Open one connection and make it ready; the time of its connect counts from `now`.

        `asked`: when the one that it replaces was asked, if that had no answer.
        """
        fd = self._connect(exchange, asked)
        if fd is not None:
            self.mode.free(fd, now)

    def _connect(self, exchange: Exchange, asked: int | None) -> int | None:
        try:
            fd = self.wires.open()
        except OSError as error:
            self._refused(exchange, error, asked, counts=not self.mode.scheduled)
            return None
        self.exchange[fd] = exchange
        if asked is not None:
            self._asked[fd] = asked
        self._fresh.add(fd)
        self.held[fd] = b""  # so that a first answer comes to `examine`
        return fd

    def begin(self, fd: int, now: int) -> None:
        """Send the connection's exchange; its start is `now`."""
        exchange = self.exchange[fd]
        self.started[fd] = now
        self.tally.sent += exchange.size
        try:
            self.wires.push(fd, exchange.request)
        except OSError as error:
            self.failed(fd, error)
        if fd in self.wires.unfinished:
            self.held[fd] = b""  # an answer that comes before the request is sent is to be seen by `examine`

    def examine(self, fd: int, data: bytes, now: int) -> None:
        """Take bytes that the hot loop did not recognise as one whole right answer."""
        self.tally.received += len(data)
        exchange = self.exchange[fd]
        if fd not in self.started:
            self._stray(fd, data)
        elif fd in self._parsers:
            self._parse(fd, exchange, data, now)
        elif not data:
            self._ended(fd)
        else:
            received = self.held.pop(fd, b"") + data
            if exchange.begins(received):
                self._recognised(fd, exchange, received, now)
            else:
                self._parsers[fd] = Parser(exchange.method, _limit(exchange))
                self._parse(fd, exchange, received, now)

    def _recognised(self, fd: int, exchange: Exchange, received: bytes, now: int) -> None:
        if exchange.renew(received):
            self._right(fd, now, closes=exchange.closes)
        else:
            self.held[fd] = received

    def _parse(self, fd: int, exchange: Exchange, data: bytes, now: int) -> None:
        self.held[fd] = b""
        try:
            answer = self._parsers[fd].feed(data)
        except ProtocolError as error:
            self.fail(fd, "protocol" if data else "closed_early", str(error))
            return
        if answer is not None:
            del self.held[fd], self._parsers[fd]
            self._judge(fd, exchange, answer, now)

    def _judge(self, fd: int, exchange: Exchange, answer: Answer, now: int) -> None:
        closes = not answer.keep_alive
        wrong = exchange.wrong(answer)
        if wrong:
            self.count(self.due[fd], *wrong)
            self._go_on(fd, now, closes=closes)
            return
        if answer.delimited and answer.raw:
            self.settle_bytes()
            exchange.learn(answer.raw, closes=closes)
            self.read_size = _read_size(self._exchanges)
        self._right(fd, now, closes=closes)

    def _right(self, fd: int, now: int, *, closes: bool) -> None:
        if self.due[fd] >= self.counted_from:
            self.tally.latencies.append(now - self.due[fd])
            if self.mode.scheduled:
                self.tally.services.append(now - self.started[fd])
        self._go_on(fd, now, closes=closes)

    def _go_on(self, fd: int, now: int, *, closes: bool) -> None:
        if fd in self._fresh:
            self._fresh.discard(fd)
            self._asked.pop(fd, None)
            self.unreachable = False
            resumed = self.wires.handshake(fd)
            self.tally.handshakes += resumed is not None
            self.tally.resumed += resumed is True
        self.started.pop(fd)
        self.due.pop(fd, None)
        exchange = self.exchange[fd] = self.exchange[fd].next
        if closes or fd in self.wires.unfinished:
            self.drop(fd)
            self.open(exchange, now)
        else:
            self.mode.free(fd, now)

    def failed(self, fd: int, error: OSError) -> None:
        """Take an exception of a connection's recv or send."""
        if isinstance(error, BlockingIOError):
            return
        if isinstance(error, ConnectionRefusedError):
            exchange, asked = self.exchange[fd], self._asked_since(fd)
            counts = fd in self.started
            self.drop(fd)
            self._refused(exchange, error, asked, counts=counts)
        elif isinstance(error, ssl.SSLError):
            self.fail(fd, "protocol", f"TLS: {error}")
        elif fd not in self.started:
            self._stray(fd, b"")
        elif fd in self._fresh or fd in self.held:
            self.fail(fd, "reset", str(error))
        else:
            self._resend(fd, "reset", str(error))

    def _ended(self, fd: int) -> None:
        received = self.held.get(fd, b"")
        if received or fd in self._fresh:
            self.fail(fd, "closed_early", f"closed after {len(received)} bytes of an answer: {received[:60]!r}")
        else:
            self._resend(fd, "closed_early", "a kept connection closed before the answer's first byte")

    def _resend(self, fd: int, kind: ErrorKind, detail: str) -> None:
        """A kept connection closed before the first byte of an answer: ask once more, on a new one.

        RFC 9110, 9.2.2, allows it for idempotent methods: a server may close a kept connection at any
        time, and the request can cross with that.
        """
        exchange = self.exchange[fd]
        if exchange.method not in IDEMPOTENT:
            self.fail(fd, kind, detail)
            return
        started, due, asked = self.started[fd], self.due[fd], self._asked_since(fd)
        self.drop(fd)
        self.tally.resent += 1
        new = self._connect(exchange, asked)
        if new is not None:
            self.due[new] = due
            self.begin(new, started)
        elif self.mode.scheduled:
            self.count(due, "refused", "closed, and refused when asked again")

    def _stray(self, fd: int, data: bytes) -> None:
        """Bytes, or the end, on a connection that has no request in flight."""
        if data:
            self.count(self.counted_from, "protocol", f"{len(data)} bytes without a request: {data[:60]!r}")
        self._open_later(self.exchange[fd], None)
        self.drop(fd)

    def fail(self, fd: int, kind: ErrorKind, detail: str) -> None:
        """Count an error of the request in flight; its connection is replaced after a pause."""
        self.count(self.due.get(fd, self.counted_from), kind, detail)
        self._open_later(self.exchange[fd].next, self._asked_since(fd))
        self.drop(fd)

    def _refused(self, exchange: Exchange, error: OSError, asked: int | None, *, counts: bool) -> None:
        self.unreachable = True
        if counts:
            self.count(self.counted_from, "refused", str(error))
        self._open_later(exchange, perf_counter_ns() if asked is None else asked)

    def _asked_since(self, fd: int) -> int | None:
        """Since when a connection, and those that it replaces, were asked without an answer; None: it is not asked."""
        return self._asked.get(fd, self.started.get(fd))

    def _open_later(self, exchange: Exchange, asked: int | None) -> None:
        self._down.append((perf_counter_ns() + PAUSE_NS, exchange, asked))

    def silent(self, begin: int, end: int) -> Silent:
        """What had no answer in a stretch that lasted from `begin` to `end`, which is now."""
        asked = [self._asked.get(fd, started) for fd, started in self.started.items()]
        asked += [since for _, _, since in self._down if since is not None]
        oldest = min(self.due.values(), default=None)
        return Silent(sum(since < begin for since in asked), None if oldest is None else end - oldest)

    def count(self, due: int, kind: ErrorKind, detail: str) -> None:
        """Count an error of a request that was due then."""
        if due >= self.counted_from:
            self.tally.errors[kind] += 1
            self.tally.first_error = self.tally.first_error or FirstError(kind, detail)

    def drop(self, fd: int) -> None:
        """Close a connection and forget it."""
        for table in (self.exchange, self.started, self.due, self.held, self.idle, self._parsers, self._asked):
            table.pop(fd, None)
        self._fresh.discard(fd)
        self.wires.drop(fd)

    def tick(self, now: int) -> None:
        """Every 10 ms: open what is to be opened again, end the requests that ran out of time."""
        ready = [entry for entry in self._down if entry[0] <= now]
        if ready:
            self._down = [entry for entry in self._down if entry[0] > now]
            for _, exchange, asked in ready:
                self.open(exchange, now, asked)
        limit = now - self._timeout_ns
        for fd in [fd for fd, due in self.due.items() if due < limit]:
            self.fail(fd, "timeout", f"no whole answer within {self._timeout_ns / 1e9:g} s")

    def settle_bytes(self) -> None:
        """Move the hot loop's count of answers into the tally's bytes."""
        for exchange in self._exchanges:
            self.tally.sent += exchange.hits * exchange.size
            self.tally.received += exchange.hits * len(exchange.good or b"")
            exchange.hits = 0

    def fresh_tally(self) -> None:
        """Count from nothing."""
        self.settle_bytes()
        self.tally = Tally()


def _limit(exchange: Exchange) -> int:
    body = exchange.expect.body
    return MAX_BODY if body is None else len(body) + SLACK


def _read_size(exchanges: list[Exchange]) -> int:
    """Just over the longest answer: small reads come from the allocator's pools."""
    return min(max(len(x.good) if x.good else MAX_READ for x in exchanges) + 16, MAX_READ)
