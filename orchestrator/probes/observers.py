"""What the probes of a server's start and end share: observers, launches, the agents' clock, requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from loadgen.contract import Clock, Clocks, Expect, Question, Request
from orchestrator.engines.agent import Agent
from orchestrator.engines.protocol import Engine, Observer, Placement, Running, Seat
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.resolved import Variant
from orchestrator.probes.checks import wait_ready
from orchestrator.probes.launching import Plan, launch_of
from orchestrator.probes.parallel import parallel

NS = 1_000_000_000
MS = 1_000_000
QUICK = "/items/42"
QUICK_BODY = b'{"item_id":42,"q":null}'


def clock_of(agent: Agent) -> Clocks:
    """The clocks of an agent's kernel, now."""
    return agent.ask(Clock())


def question(url: str, path: str, body: bytes) -> Question:
    """A request and its right answer."""
    return Question(Request(url=url + path), Expect(200, body))


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
