"""What the memory engine answers about load at a rate, and about a server's start and end: invented, always alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

import msgspec
from msgspec import Struct

from loadgen import contract
from loadgen.contract import Accounted, Arrival, Clocks, End, Fate, Fates, Steady, Watch, Watched
from orchestrator.engines.agent import Agent
from orchestrator.engines.protocol import Seat

MS = 1_000_000
REMAINING_NS, EXIT_NS = 1_250 * MS, 1_300 * MS


def watched(end: End | Literal["ignored"], queued: End | Literal["at_once"], call: Watch) -> Watched:
    """The answer to `watch` of a server that closes idle connections.

    `queued`: the end of the request that waits for a place; `at_once`: none does.
    """
    signal, later, asked = call.signal_ns, call.signal_ns + call.after_ns, call.signal_ns - call.queue_ns
    ready_ns = asked + (MS if queued == "at_once" else call.queue_ns + REMAINING_NS + MS)
    serves_on, slow_end = end == "ignored", "answered" if end == "ignored" else end
    fates = Fates(
        slow=_ended(slow_end, signal + REMAINING_NS, signal - call.lead_ns),
        queued=_ended("answered" if queued == "at_once" else queued, ready_ns, asked),
        idle=Fate("open", call.until_ns) if serves_on else Fate("closed", signal + 2 * MS),
        kept=_ended("answered", later + MS, later) if serves_on else Fate("closed", signal + 2 * MS),
        new=_ended("answered", later + MS, later) if serves_on else Fate("refused", later),
    )
    return Watched(received_ns=signal - call.lead_ns + MS, connections=fates)


def _ended(end: End, end_ns: int, sent_ns: int) -> Fate:
    """Of a request: its answer is whole, or nothing of it came."""
    if end != "answered":
        return Fate(end, end_ns, sent_ns)
    return Fate(end, end_ns, sent_ns, first_byte_ns=end_ns, bytes=180, status=200)


def steady(call: Steady) -> Accounted:
    """The answer to `steady`: what is due in the first tenth of a second after the switch is lost."""
    switch_ns = call.end_ns if call.switch_ns is None else call.switch_ns
    lost = range(switch_ns, switch_ns + 100 * MS)
    due = range(call.begin_ns, call.end_ns, int(1e9 / call.rate))
    return Accounted(requests=tuple(Arrival(at, at + 12 * MS, "closed_early" if at in lost else "") for at in due))


def clock(_: contract.Clock) -> Clocks:
    """Time does not pass here."""
    return Clocks(monotonic_ns=0, wall_ns=0)


@dataclass(frozen=True)
class Driven:
    """What an open loop comes to: requests due, those answered before its end, mean latency, share of time at work."""

    due: int
    in_time: int
    mean_us: float
    busy: float


def driven_open(rate: float, capacity: float, elapsed_s: float) -> Driven:
    """An M/M/1 queue; at 97 % of its `capacity` (requests per second) and beyond, one that is as long."""
    due, load = int(rate * elapsed_s), rate / capacity
    return Driven(due, min(due, int(capacity * elapsed_s)), 1e6 / capacity / max(1 - load, 0.03), min(load, 1.0))


class MemoryObserver:
    """Beside no server in particular; it is its own channel to its agent."""

    def __init__(self) -> None:
        self.agent = Agent(self)
        self._ports = count(8000)
        self._answer = ""

    def seat(self) -> Seat:
        return Seat(self.agent, "memory", next(self._ports))

    def stop(self) -> None:
        """Nothing to remove."""

    def send(self, line: str) -> None:
        call = msgspec.json.decode(line, type=contract.AnyCall)
        self._answer = contract.encode(_OBSERVED[type(call)](call))

    def receive(self, timeout_s: float) -> str:
        return self._answer

    def close(self) -> None:
        """Nothing to close."""


def _begun(_: contract.Startup) -> contract.Begun:
    return contract.Begun(accepted_ns=200 * MS, answered_ns=210 * MS, latencies_us=(9_000.0, *[300.0] * 9))


def _fetched(call: contract.Fetch) -> contract.Fetched:
    return contract.Fetched(answers=(contract.Answered(status=200, body=b'{"pid":2}'),) * len(call.requests))


_OBSERVED: Mapping[type[contract.Call[Any]], Callable[[Any], Struct]] = {
    contract.Clock: clock,
    contract.Startup: _begun,
    contract.Fetch: _fetched,
    contract.Steady: steady,
}
"""What an observer answers."""
