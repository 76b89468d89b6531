"""Arrivals at a fixed rate: requests have a time of their own, whatever the server does."""

from __future__ import annotations

import dataclasses
import random
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from time import perf_counter_ns

from loadgen.contract import LoadSpec
from loadgen.pool import Pool
from loadgen.tally import Silent

NEVER = 2**63 - 1
LATE_NS = 1_000_000  # a request is late when the generator came to it over 1 ms after its time
LATE_SHARE = 0.01  # a slice is `client_late` when over 1 % of its requests are


def schedule(spec: LoadSpec, begin: int, end: int) -> Iterator[int]:
    """The times (ns) of the requests from `begin` to before `end`, in order.

    Constant: one every 1/rate seconds, without drift. Poisson: exponential gaps from `seed`.
    """
    assert spec.rate is not None  # held by spec.checked
    gap = 1e9 / spec.rate
    constant = (begin + int(i * gap) for i in count())
    for time in constant if spec.arrivals == "constant" else _poisson(random.Random(spec.seed), begin, gap):
        if time >= end:
            return
        yield time


def _poisson(source: random.Random, begin: int, gap: float) -> Iterator[int]:
    elapsed = 0.0
    while True:
        elapsed += source.expovariate(1.0) * gap
        yield begin + int(elapsed)


class Arrivals:
    """An open loop: gives the requests of a schedule to the connections of a pool; those that find none free queue up.

    It is the pool's mode.
    """

    scheduled = True

    def __init__(self, pool: Pool, times: Iterator[int], timeout_s: float) -> None:
        self._pool = pool
        self._times = times
        self._timeout_ns = int(timeout_s * 1e9)
        self._queue: deque[int] = deque()
        self.next_due = next(times, NEVER)
        self.late = 0
        self.late_max = 0
        self.due: dict[int, int] = {}
        self.free: Callable[[int, int], None] = self._free
        pool.enter(self)

    def _free(self, fd: int, now: int) -> None:
        if self._queue:
            self._send(fd, self._queue.popleft(), now)
        else:
            self._pool.idle[fd] = now

    def _send(self, fd: int, due: int, now: int) -> None:
        self.due[fd] = due
        self._pool.begin(fd, now)

    def dispatch(self, now: int) -> None:
        """Send, or queue, the requests whose time has come; while the server refuses connections they fail."""
        pool = self._pool
        while self.next_due <= now:
            due, self.next_due = self.next_due, next(self._times, NEVER)
            self._lateness(due, now)
            if pool.idle:
                fd = next(iter(pool.idle))
                del pool.idle[fd]
                self._send(fd, due, perf_counter_ns())
            elif pool.unreachable and not pool.exchange:
                pool.count(due, "refused", "the server refuses connections")
            else:
                self._queue.append(due)

    def _lateness(self, due: int, now: int) -> None:
        if due >= self._pool.counted_from:
            self.late_max = max(self.late_max, now - due)
            self.late += now - due > LATE_NS

    def expire(self, now: int) -> None:
        """End the requests that waited for a connection until they ran out of time."""
        while self._queue and self._queue[0] < now - self._timeout_ns:
            due = self._queue.popleft()
            self._pool.count(due, "timeout", f"no connection was free for {self._timeout_ns / 1e9:g} s")

    def silent(self, begin: int, end: int) -> Silent:
        """As the pool's; a request that waits for a free connection is open, too."""
        found = self._pool.silent(begin, end)
        queued = end - self._queue[0] if self._queue else None
        oldest = max((age for age in (found.oldest_ns, queued) if age is not None), default=None)
        return dataclasses.replace(found, oldest_ns=oldest)

    def over(self) -> bool:
        """Whether nothing is left to send or to wait for."""
        return self.next_due == NEVER and not self._queue and not self.due
