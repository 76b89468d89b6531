"""The startup probe: from the exec of the server to its first connection and answer, and what it costs when idle.

The observer asks before the server is there. The command is started through images/apps/launch/mark.py, which says
when it becomes the server; its own CPU is taken off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import msgspec
from msgspec import Struct

from loadgen.contract import Begun, Failed, Startup, TakeSample
from orchestrator.engines.ends import telling_line, words_of
from orchestrator.engines.protocol import Engine, Observer, Running
from orchestrator.errors import LoadFailed, ServerFailed
from orchestrator.images.plan import BuiltImage
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.expand import Selection
from orchestrator.probes.checks import READY_WITHIN_S
from orchestrator.probes.images import failure_of
from orchestrator.probes.launching import Plan, launch_of
from orchestrator.probes.observers import MS, NS, QUICK, QUICK_BODY, clock_of, observers, question
from orchestrator.probes.parallel import parallel
from orchestrator.probes.results import Failure, Section

MARKED = "{venv}/bin/python -S {apps}/launch/mark.py "
MARK = '{"mark_ns"'
IDLE_NS = NS // 2


START_S = 1.4
"""Seconds of one start, its ten answers, its rest and its stop: the mean of the reference run, on Docker."""


def startup_seconds(selection: Selection) -> float:
    """Estimate of the time for all starts, which come one after the other."""
    return START_S * selection.schedule.rounds * len(selection.cells)


def probe_startup(engine: Engine, plan: Plan, cell: Cell, image: BuiltImage | Failure) -> Section | Failure:
    """`rounds` fresh starts, one after the other: least, middle and greatest of each figure."""
    if failure := failure_of(image):
        return failure
    try:
        with observers(engine, plan.placement, 1) as (observer,):
            starts = [_start(engine, plan, cell, observer) for _ in range(plan.schedule.rounds)]
    except ServerFailed as error:
        return Failure("start", error.what)
    except LoadFailed as error:
        return Failure("load", error.what)
    return {"starts": starts, **{name: spread([start[name] for start in starts]) for name in starts[0]}}


def _start(engine: Engine, plan: Plan, cell: Cell, observer: Observer) -> Section:
    seat = observer.seat()
    launch = launch_of(plan, cell, replace(cell.variant, run=MARKED + cell.variant.run))
    until = clock_of(observer.agent).monotonic_ns + int(READY_WITHIN_S * NS)
    call = Startup(quick=question(seat.url, QUICK, QUICK_BODY), until_ns=until, idle_ns=IDLE_NS)
    answers: list[Begun | Failed] = []
    up: list[Running] = []

    def ask() -> None:
        answer = observer.agent.call(call, timeout_s=READY_WITHIN_S + 15)
        answers.append(answer)

    try:
        parallel(_call, (ask, lambda: up.append(engine.start(launch, seat))), 2)
        return _figures(up[0], answers[0])
    finally:
        for running in up:
            running.stop()


def _call(work: Callable[[], None]) -> None:
    work()


def _figures(running: Running, begun: Begun | Failed) -> Section:
    if isinstance(begun, Failed):
        raise _silent(running, begun)
    mark, sample = mark_of(running.log()), running.signaller.ask(TakeSample(pid=running.root_pid)).sample
    return {
        "accepted_ms": round((begun.accepted_ns - mark.mark_ns) / MS, 3),
        "answered_ms": round((begun.answered_ns - mark.mark_ns) / MS, 3),
        "first_us": round(begun.latencies_us[0], 1),
        "tenth_us": round(begun.latencies_us[9], 1),
        "cpu_ms": round(sample.cpu_s * 1000 - mark.cpu_ns / MS, 3),
        "rss_bytes": sample.rss_bytes,
        "pss_bytes": sample.pss_bytes,
        "processes": sample.processes,
    }


def _silent(running: Running, answer: Failed) -> ServerFailed:
    """Why there was no right answer: the server's end, or what came in its place; and what its log tells."""
    said = "\n".join(line for line in running.log().splitlines() if not line.startswith(MARK))
    if end := running.wait(0.0):
        return ServerFailed(words_of(end, said))
    log = f"; its log: {line}" if (line := telling_line(said)) else ""
    return ServerFailed(f"no right answer within {READY_WITHIN_S:.0f} s: {answer.error.message or 'none at all'}{log}")


class Mark(Struct, frozen=True):
    """The moment at which the command became the server, and the CPU that was used by then; in ns."""

    mark_ns: int
    cpu_ns: int


def mark_of(log: str) -> Mark:
    """What mark.py said. Raises ServerFailed where it said nothing."""
    line = next((line for line in log.splitlines() if line.startswith(MARK)), "")
    try:
        return msgspec.json.decode(line, type=Mark)
    except msgspec.DecodeError as error:
        raise ServerFailed("the start was not marked: the command did not run") from error


def spread(values: Sequence[Any]) -> Section | None:
    """None where a value could not be taken."""
    if any(value is None for value in values):
        return None
    return {"low": min(values), "median": median(values), "high": max(values)}
