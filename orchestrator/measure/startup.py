"""The startup probe: from the exec of the server to its first connection and answer, and what it costs when idle.

The observer asks before the server is there. The command is started through images/apps/launch/mark.py, which says
when it becomes the server; its own CPU is taken off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from orchestrator.cells.model import Cell
from orchestrator.engines.agent import Answer
from orchestrator.engines.protocol import Engine, Observer, Running
from orchestrator.errors import LoadFailed, ServerFailed
from orchestrator.images.plan import BuiltImage
from orchestrator.measure.checks import READY_WITHIN_S
from orchestrator.measure.images import failure_of
from orchestrator.measure.lifecycle import MS, NS, QUICK, QUICK_BODY, asked, clock_of, observers
from orchestrator.measure.parallel import parallel
from orchestrator.measure.results import Failure, Section
from orchestrator.measure.rounds import Plan, launch_of

MARKED = "{venv}/bin/python -S {apps}/launch/mark.py "
MARK = '{"mark_ns"'
IDLE_NS = NS // 2


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
    asked_for = {"quick": asked(seat.url, QUICK, QUICK_BODY), "until_ns": until, "idle_ns": IDLE_NS}
    answers: list[Answer] = []
    up: list[Running] = []

    def ask() -> None:
        answers.append(observer.agent.call("startup", timeout_s=READY_WITHIN_S + 15, **asked_for))

    try:
        parallel(_call, (ask, lambda: up.append(engine.start(launch, seat))), 2)
        return _figures(up[0], answers[0])
    finally:
        for running in up:
            running.stop()


def _call(work: Callable[[], None]) -> None:
    work()


def _figures(running: Running, answer: Answer) -> Section:
    if not answer["ok"]:
        said = [line for line in running.log().splitlines() if line.strip() and not line.startswith(MARK)]
        raise ServerFailed(
            (said or [f"no right answer within {READY_WITHIN_S:.0f} s: {answer['error']['message']}"])[-1]
        )
    mark = mark_of(running.log())
    sample = running.signaller.ask("sample", pid=running.root_pid)["sample"]
    return {
        "accepted_ms": round((answer["accepted_ns"] - mark["mark_ns"]) / MS, 3),
        "answered_ms": round((answer["answered_ns"] - mark["mark_ns"]) / MS, 3),
        "first_us": round(answer["latencies_us"][0], 1),
        "tenth_us": round(answer["latencies_us"][9], 1),
        "cpu_ms": round(sample["cpu_s"] * 1000 - mark["cpu_ns"] / MS, 3),
        "rss_bytes": sample["rss_bytes"],
        "pss_bytes": sample["pss_bytes"],
        "processes": sample["processes"],
    }


def mark_of(log: str) -> Mapping[str, int]:
    """What mark.py said. Raises ServerFailed where it said nothing."""
    line = next((line for line in log.splitlines() if line.startswith(MARK)), "")
    if not line:
        raise ServerFailed("the start was not marked: the command did not run")
    return dict(json.loads(line))


def spread(values: Sequence[Any]) -> Section | None:
    """None where a value could not be taken."""
    if any(value is None for value in values):
        return None
    return {"low": min(values), "median": median(values), "high": max(values)}
