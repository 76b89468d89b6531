"""Steady arrivals while servers come and go: every request with its fate, and targets that change at a moment.

A client as a load balancer is one: it keeps connections, opens a new one where a kept one is seen to be closed, sends
no request twice, and goes by its list of endpoints.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from time import monotonic_ns

from loadgen import spec
from loadgen.client import Failure, connect
from loadgen.errors import SpecError
from loadgen.lifecycle import MOMENT, Asked, converse, sleep_until
from loadgen.spec import Json

KINDS = {"cut": "closed_early", "open": "timeout"}


def steady(doc: Json) -> Json:
    """Ask `rate` times a second from `begin_ns` to `end_ns`: the first target, from `switch_ns` on the last one.

    `requests`: [due_ns, end_ns, kind] of each, kind "" for a right answer. At most `connections` are in flight; one
    that finds none free waits, and its time counts from when it was due.
    """
    targets = doc.get("targets")
    if not isinstance(targets, list) or not 1 <= len(targets) <= 2:
        raise SpecError("targets: one or two of them")
    asked = [Asked.from_json(f"targets[{at}]", target) for at, target in enumerate(targets)]
    begin, end = MOMENT("begin_ns", doc.get("begin_ns")), MOMENT("end_ns", doc.get("end_ns"))
    gap = int(1e9 / spec.number(0.1, 1000)("rate", doc.get("rate")))
    client = _Client(asked, MOMENT("switch_ns", doc.get("switch_ns", end)), range(begin, end, gap))
    connections = spec.number(1, 256, int)("connections", doc.get("connections", 16))
    with ThreadPoolExecutor(connections) as threads:
        for future in [threads.submit(client.run) for _ in range(connections)]:
            future.result()
    return {"ok": True, "requests": sorted(client.done)}


class _Client:
    """What the connections share: the times that are due, and what became of each."""

    def __init__(self, targets: list[Asked], switch: int, times: range) -> None:
        self.done: list[tuple[int, int, str]] = []
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
                self.done.append((due, monotonic_ns(), kind))

    def _take(self) -> int | None:
        with self._lock:
            at = next(self._next)
        return self._times[at] if at < len(self._times) else None


def _ask(
    kept: tuple[Asked, socket.socket] | None, asked: Asked, stack: contextlib.ExitStack
) -> tuple[tuple[Asked, socket.socket] | None, str]:
    """The connection to go on with, and what went wrong, if anything."""
    deadline = monotonic_ns() + int(asked.request.timeout_s * 1e9)
    sock = kept[1] if kept and kept[0] is asked and not _ended(kept[1]) else None
    if kept and sock is None:
        kept[1].close()
    try:
        if sock is None:
            sock = stack.enter_context(connect(asked.request.address, asked.request.timeout_s))
    except Failure as failure:
        return None, failure.kind
    fate = converse(sock, asked, deadline)
    kind = "" if fate.end == "answered" else KINDS.get(fate.end, fate.end)
    return ((asked, sock) if fate.kept else None), kind


def _ended(sock: socket.socket) -> bool:
    """Whether there is something to read where nothing was asked: most likely the end."""
    return bool(select.select([sock], [], [], 0)[0])
