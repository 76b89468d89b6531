"""Steady arrivals while servers come and go: every request with its fate, and targets that change at a moment.

A client as a load balancer is one: it keeps connections, opens a new one where a kept one is seen to be closed, sends
no request twice, and goes by its list of endpoints.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from time import monotonic_ns
from typing import Literal

from loadgen.client import Failure, connect
from loadgen.contract import Accounted, Arrival, End, ErrorKind, Steady
from loadgen.lifecycle import Asked, converse, sleep_until

Kind = ErrorKind | Literal[""]
KINDS: Mapping[End, Kind] = {
    "answered": "",
    "cut": "closed_early",
    "open": "timeout",
    "reset": "reset",
    "protocol": "protocol",
    "status": "status",
    "wrong_body": "wrong_body",
}
"""What the end of an exchange counts as."""


def steady(call: Steady) -> Accounted:
    """Ask steadily, as `contract.Steady` says. Raises SpecError."""
    asked = [Asked.of(target, f"targets[{at}]") for at, target in enumerate(call.targets)]
    switch = call.end_ns if call.switch_ns is None else call.switch_ns
    client = _Client(asked, switch, range(call.begin_ns, call.end_ns, int(1e9 / call.rate)))
    with ThreadPoolExecutor(call.connections) as threads:
        for future in [threads.submit(client.run) for _ in range(call.connections)]:
            future.result()
    return Accounted(requests=tuple(sorted(client.done, key=lambda arrival: arrival.due_ns)))


class _Client:
    """What the connections share: the times that are due, and what became of each."""

    def __init__(self, targets: list[Asked], switch: int, times: range) -> None:
        self.done: list[Arrival] = []
        self._targets = targets
        self._switch = switch
        self._times = times
        self._next = count()
        self._lock = threading.Lock()

    def run(self) -> None:
        """One connection at a time, to the target of the moment."""
        with contextlib.ExitStack() as stack:
            kept: tuple[Asked, socket.socket] | None = None
            while (due := self._take()) is not None:
                sleep_until(due)
                asked = self._targets[-1 if due >= self._switch else 0]
                kept, kind = _ask(kept, asked, stack)
                self.done.append(Arrival(due, monotonic_ns(), kind))

    def _take(self) -> int | None:
        with self._lock:
            at = next(self._next)
        return self._times[at] if at < len(self._times) else None


def _ask(
    kept: tuple[Asked, socket.socket] | None, asked: Asked, stack: contextlib.ExitStack
) -> tuple[tuple[Asked, socket.socket] | None, Kind]:
    """The connection to go on with, and what went wrong, if anything."""
    deadline = monotonic_ns() + int(asked.outgoing.request.timeout_s * 1e9)
    sock = kept[1] if kept and kept[0] is asked and not _ended(kept[1]) else None
    if kept and sock is None:
        kept[1].close()
    try:
        if sock is None:
            sock = stack.enter_context(connect(asked.outgoing.address, asked.outgoing.request.timeout_s))
    except Failure as failure:
        return None, failure.kind
    fate = converse(sock, asked, deadline)
    return ((asked, sock) if fate.kept else None), KINDS[fate.end]


def _ended(sock: socket.socket) -> bool:
    """Whether there is something to read where nothing was asked: most likely the end."""
    return bool(select.select([sock], [], [], 0)[0])
