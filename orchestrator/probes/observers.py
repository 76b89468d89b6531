"""What the probes of a server's start and end share: observers, launches, the agents' clock, requests."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from orchestrator.engines.agent import Agent
from orchestrator.engines.protocol import Engine, Observer, Placement, Running, Seat
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.resolved import Variant
from orchestrator.probes.checks import wait_ready
from orchestrator.probes.load.measure import Plan, launch_of
from orchestrator.probes.parallel import parallel

NS = 1_000_000_000
MS = 1_000_000
QUICK = "/items/42"
QUICK_BODY = b'{"item_id":42,"q":null}'


@dataclass(frozen=True)
class Clock:
    """An agent's kernel at one moment: CLOCK_MONOTONIC and the time of day, in ns."""

    monotonic_ns: int
    wall_ns: int

    def monotonic(self, wall_ns: int) -> int:
        """A time of day on the monotonic clock."""
        return wall_ns - self.wall_ns + self.monotonic_ns


def clock_of(agent: Agent) -> Clock:
    answer = agent.ask("clock")
    return Clock(int(answer["monotonic_ns"]), int(answer["wall_ns"]))


def asked(url: str, path: str, body: bytes) -> dict[str, Any]:
    """A request and its right answer, as the agent takes them."""
    return {"request": {"url": url + path}, "expect": {"status": 200, "body": base64.b64encode(body).decode()}}


@contextmanager
def observers(engine: Engine, placement: Placement, number: int) -> Iterator[list[Observer]]:
    """Observers for servers that run at the same time. Raises ServerFailed."""
    made: list[Observer] = []
    try:
        made.extend(engine.observe(placement) for _ in range(number))
        yield made
    finally:
        parallel(lambda observer: observer.stop(), made, number)


def start_ready(
    engine: Engine, plan: Plan, cell: Cell, variant: Variant, seat: Seat, asker: Literal["agent", "signaller"] = "agent"
) -> Running:
    """Start a cell's server as `variant` says, and wait for its first right answer. Raises ServerFailed.

    `asker`: which agent asks it, as an observer may be busy.
    """
    running = engine.start(launch_of(plan, cell, variant), seat)
    try:
        wait_ready(running, plan.matrix.workloads["item"], running.signaller if asker == "signaller" else running.agent)
    except BaseException:
        running.stop()
        raise
    return running
