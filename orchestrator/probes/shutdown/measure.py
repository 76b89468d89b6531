"""The shutdown probe: what a request in flight, and connections beside it, get when a server is told to end.

A request to a handler of 1.5 s is in flight; 250 ms after it was sent comes the signal. As many of the same as the
server has workers times threads are, so that one more request, of a quick handler, waits for a place when the signal
comes: in the kernel's backlog, or inside the server. Servers that serve any number at a time answer it at once.

The observer that holds the connections shares the server's network only, so that it lives on when PID 1 takes its
namespace along; the agent that sends the signal is inside. Both read one kernel's CLOCK_MONOTONIC.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median
from typing import Any

import msgspec

from loadgen.contract import Clock, Clocks, Fate, Signal, Signalled, SignalName, Watch, Watched
from orchestrator.engines.ends import Exit
from orchestrator.engines.protocol import Engine, Observer, Running
from orchestrator.errors import AgentGone, LoadFailed, ServerFailed
from orchestrator.images.plan import BuiltImage
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.expand import Selection
from orchestrator.matrix.resolved import Variant, tuned
from orchestrator.probes.images import failure_of
from orchestrator.probes.launching import Plan
from orchestrator.probes.observers import (
    MS,
    NS,
    QUICK,
    QUICK_BODY,
    clock_of,
    observers,
    question,
    start_ready,
)  # fmt: skip
from orchestrator.probes.parallel import parallel
from orchestrator.probes.results import Failure, Section

AT_ONCE = 4
AHEAD_NS = 1000 * MS
LEAD_NS = 250 * MS
QUEUE_NS = 100 * MS
AFTER_NS = 100 * MS
LATE_NS, EARLY_NS = 50 * MS, 100 * MS  # a signal later than this, or a request nearer to it, does not count
SOON_NS = 50 * MS  # the same of the request that is queued
TRIES = 3
PIECE, GAP_MS = bytes(range(251)), 100  # of /stream, see docs/apps.md


@dataclass(frozen=True)
class Case:
    """What happens to a server. `signal` None: SIGTERM, or what its entry's `shutdown` says where it is tuned.

    `again_ms`: a second signal so long after the first. `grace_s`: given to tuned servers. `slow_s`: how long the
    handler of `path` takes.
    """

    path: str = "/sleep/1500"
    body: bytes = b'{"slept_ms":1500}'
    signal: SignalName | None = None
    group: bool = False
    again_ms: int | None = None
    grace_s: int = 8
    slow_s: float = 1.5


CASES: Mapping[str, Case] = {
    "term": Case(),
    "int": Case(signal="SIGINT"),
    "twice": Case(again_ms=250),
    "group": Case(group=True),
    "long": Case("/sleep/5000", b'{"slept_ms":5000}', grace_s=2, slow_s=5.0),
    "stream": Case(f"/stream/{15 * GAP_MS}", PIECE * 15),
}


BATCH_S = 7.0
"""Seconds around a slow request: up to AT_ONCE servers start, wait for the signal, end and go.

The reference run took 8.4 s for a case with a request of 1.5 s, on Docker.
"""


def shutdown_seconds(selection: Selection) -> float:
    """Estimate of the time for all repetitions of all cases; a server that ignores its signal takes longer."""
    schedule = selection.schedule
    batches = math.ceil(schedule.rounds / AT_ONCE)
    of_cell = sum(batches * (BATCH_S + CASES[name].slow_s) for name in schedule.cases)
    return of_cell * len(selection.cells)


def probe_shutdown(engine: Engine, plan: Plan, cell: Cell, image: BuiltImage | Failure) -> Section | Failure:
    """All cases of the suite's schedule, each `rounds` times on a fresh server. A Failure where it cannot be done."""
    if failure := failure_of(image):
        return failure
    try:
        with observers(engine, plan.placement, min(AT_ONCE, plan.schedule.rounds)) as beside:
            cases = [_case(engine, plan, cell, name, beside) for name in plan.schedule.cases]
    except ServerFailed as error:
        return Failure("start", error.what)
    except LoadFailed as error:
        return Failure("load", error.what)
    return {"kill_after_s": plan.schedule.kill_after_s, "cases": cases}


def _case(engine: Engine, plan: Plan, cell: Cell, name: str, beside: Sequence[Observer]) -> Section:
    case, wanted, kill_after_s = CASES[name], plan.schedule.rounds, plan.schedule.kill_after_s
    variant = tuned(cell.variant, case.grace_s) if cell.tuned else cell.variant
    signal = signal_of(cell, case)
    found: list[Section] = []
    root = 0
    for _ in range(TRIES * math.ceil(wanted / len(beside))):
        with _servers(engine, plan, cell, variant, beside[: wanted - len(found)]) as up:
            root = up[0].root_pid
            shots = parallel(lambda running: _shot(running, case, signal, places(cell), kill_after_s), up, AT_ONCE)
        found += [shot for shot in shots if shot]
        if len(found) == wanted:
            break
    else:
        raise LoadFailed(f"{name}: request or signal came late in most of the tries: the machine is too busy")
    flags = variant.options.removeprefix(cell.variant.options).strip()
    told = {"case": name, "signal": signal, "request": case.path, "flags": flags, "pid1": root == 1,
            "places": places(cell)}  # fmt: skip
    return {**told, **summary(found), "repetitions": found}


def signal_of(cell: Cell, case: Case) -> SignalName:
    """The signal of a case; a tuned cell's entry may name the one that its server ends well on."""
    own: SignalName = cell.variant.shutdown.signal if cell.tuned and cell.variant.shutdown else "SIGTERM"
    return case.signal or own


def places(cell: Cell) -> int:
    """How many requests a server serves at a time where each takes a thread, or a worker without threads."""
    return cell.workers * (cell.threads or 1)


@contextmanager
def _servers(
    engine: Engine, plan: Plan, cell: Cell, variant: Variant, beside: Sequence[Observer]
) -> Iterator[list[Running]]:
    """A ready server beside each observer, with its signaller: while they are measured nothing else is started."""
    up: list[Running] = []

    def start(observer: Observer) -> None:
        running = start_ready(engine, plan, cell, variant, observer.seat())
        up.append(running)
        running.signaller.ask(Clock())

    try:
        parallel(start, beside, AT_ONCE)
        yield up
    finally:
        parallel(lambda running: running.stop(), up, AT_ONCE)


def _shot(running: Running, case: Case, signal: SignalName, busy: int, kill_after_s: float) -> Section | None:
    """End one server that has so many slow requests, and one queued behind them.

    None where a request or the signal came late, or the signal's sender went before it could tell when.
    """
    clock = clock_of(running.agent)
    at = clock.monotonic_ns + AHEAD_NS
    until = at + int(kill_after_s * NS)
    watch = Watch(
        slow=question(running.url, case.path, case.body),
        quick=question(running.url, QUICK, QUICK_BODY),
        fill=busy - 1,
        signal_ns=at,
        until_ns=until,
        lead_ns=LEAD_NS,
        queue_ns=QUEUE_NS,
        after_ns=AFTER_NS,
    )
    try:
        with ThreadPoolExecutor(1) as aside:
            watching = aside.submit(running.agent.ask, watch, timeout_s=kill_after_s + 30)
            sent = _signal(running, case, signal, at)
            watched = watching.result()
    except AgentGone:
        return None
    if _late(sent, watched, at):
        return None
    ended = running.wait(max(0.0, (until - clock_of(running.agent).monotonic_ns) / NS))
    return repetition(sent, watched, ended, clock)


def _late(sent: Signalled, watched: Watched, at: int) -> bool:
    """Whether the signal came late, or the server got a request too near to it to be ready for it."""
    slow, queued = watched.connections.slow.sent_ns, watched.connections.queued.sent_ns
    received = watched.received_ns or slow or 0
    return sent.after_ns - at > LATE_NS or received > at - EARLY_NS or (queued or 0) > at - SOON_NS


def _signal(running: Running, case: Case, signal: SignalName, at: int) -> Signalled:
    """Send the case's signals. The second may find nobody, or end its sender."""
    call = Signal(pid=running.root_pid, name=signal, at_ns=at, group=case.group)
    sent = running.signaller.ask(call)
    if case.again_ms is not None:
        with suppress(AgentGone):
            running.signaller.ask(msgspec.structs.replace(call, at_ns=at + case.again_ms * MS))
    return sent


def repetition(sent: Signalled, watched: Watched, ended: Exit | None, clock: Clocks) -> Section:
    """One ending, in ms after the signal: half way between the readings before and after kill(2)."""
    zero = (sent.before_ns + sent.after_ns) // 2

    def ms(moment: int | None) -> float | None:
        return None if moment is None else round((moment - zero) / MS, 3)

    def seen(fate: Fate) -> Section:
        return {
            "end": fate.end, "at_ms": ms(fate.end_ns), "sent_ms": ms(fate.sent_ns),
            "first_byte_ms": ms(fate.first_byte_ns), "bytes": fate.bytes, "status": fate.status,
        }  # fmt: skip

    connections = {name: seen(fate) for name, fate in msgspec.structs.asdict(watched.connections).items()}
    exit_ms = ms(clock.monotonic(ended.wall_ns)) if ended else None
    return {
        "outcome": outcome(connections, exit_ms),
        "signal_error_us": (sent.after_ns - sent.before_ns) / 2000,
        "received_ms": ms(watched.received_ns),
        **connections,
        "exit_ms": exit_ms,
        "exit_code": ended.code if ended else None,
    }


def outcome(connections: Mapping[str, Mapping[str, Any]], exit_ms: float | None) -> str:
    """What became of the request in flight; `ignored` where the server went on as if there were no signal."""
    if exit_ms is None and connections["new"]["end"] == connections["slow"]["end"] == "answered":
        return "ignored"
    return str(connections["slow"]["end"])


def summary(found: Sequence[Mapping[str, Any]]) -> Section:
    """The one outcome of all repetitions or `mixed`, how often each came, and the middle of times and ends."""
    outcomes = Counter(str(item["outcome"]) for item in found)
    codes = ["killed" if item["exit_code"] is None else str(item["exit_code"]) for item in found]
    return {
        "outcome": next(iter(outcomes)) if len(outcomes) == 1 else "mixed",
        "outcomes": dict(outcomes),
        "end_ms": _median([item["slow"]["at_ms"] for item in found]),
        "exit_ms": _median([item["exit_ms"] for item in found if item["exit_ms"] is not None]),
        "exit_codes": dict(Counter(codes)),
        "signal_error_us": max(item["signal_error_us"] for item in found),
        **{name: dict(Counter(end_of(item[name]) for item in found)) for name in ("queued", "idle", "kept", "new")},
    }


def end_of(fate: Mapping[str, Any]) -> str:
    """The end of a connection beside the request in flight; `at_once` where the answer came before the signal did."""
    return "at_once" if fate["end"] == "answered" and fate["at_ms"] < 0 else str(fate["end"])


def _median(values: Sequence[float]) -> float | None:
    return round(median(values), 3) if values else None
