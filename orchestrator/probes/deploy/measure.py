"""The deploy probe: steady arrivals, and in the midst of them what an orchestrator or an operator does to a server.

The client keeps connections, goes by its list of endpoints and sends nothing twice, as a load balancer that does not
retry. Every request is accounted for: right, or lost and how; and when it was due.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from statistics import median
from threading import Thread

from loadgen.contract import Accounted, Arrival, Clock, Fetch, Request, Signal, SignalName, Steady
from orchestrator.engines.agent import Agent
from orchestrator.engines.protocol import Engine, Observer, Running
from orchestrator.errors import LoadFailed, ServerFailed
from orchestrator.images.plan import BuiltImage
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.expand import Selection
from orchestrator.matrix.resolved import Variant, tuned
from orchestrator.probes.fingerprint import read_fingerprint
from orchestrator.probes.images import failure_of
from orchestrator.probes.launching import Plan
from orchestrator.probes.observers import MS, NS, clock_of, observers, question, start_ready
from orchestrator.probes.results import Failure, Section

RATE = 50
CONNECTIONS = 6  # a server that gives each kept connection a thread must have one left
PATH, BODY = "/sleep/10", b'{"slept_ms":10}'
BEFORE_S, AFTER_S = 2.0, 5.0
ROLLING_S = 9.0  # of traffic while the second instance starts
GRACE_S, TIMEOUT_S = 8, 2
BIN_NS = 100 * MS
CALM_BINS = 5


START_S = 1.4  # of a server, until it answers


@dataclass(frozen=True)
class Scene:
    """A server under load, and what it takes to disturb it."""

    engine: Engine
    plan: Plan
    cell: Cell
    observer: Observer
    first: Running


def deploy_seconds(selection: Selection) -> float:
    """Estimate of the time for all disturbances that the cells can be put to, each in all its repetitions."""
    names = [name for cell in selection.cells for name in selection.schedule.disturb if not unable(cell, name)]
    return selection.schedule.rounds * sum(_seconds(name) for name in names)


def _seconds(name: str) -> float:
    """From the start of the first server to the end of the load."""
    return START_S + (ROLLING_S if name in ("rolling", "late") else BEFORE_S) + AFTER_S


def probe_deploy(engine: Engine, plan: Plan, cell: Cell, image: BuiltImage | Failure) -> Section | Failure:
    """The disturbances of the suite's schedule, each `rounds` times. A Failure where a server does not start."""
    if failure := failure_of(image):
        return failure
    try:
        with observers(engine, plan.placement, 1) as (observer,):
            cases = [_case(engine, plan, cell, observer, name) for name in plan.schedule.disturb]
    except ServerFailed as error:
        return Failure("start", error.what)
    except LoadFailed as error:
        return Failure("load", error.what)
    return {"rate": RATE, "request": PATH, "cases": cases}


def _case(engine: Engine, plan: Plan, cell: Cell, observer: Observer, name: str) -> Section:
    if why := unable(cell, name):
        return {"case": name, "unable": why, "repetitions": []}
    found = []
    for _ in range(plan.schedule.rounds):
        with ExitStack() as stack:
            first = start_ready(engine, plan, cell, _variant(cell, name), observer.seat())
            stack.callback(first.stop)
            found.append(CASES[name](Scene(engine, plan, cell, observer, first), stack))
    return {"case": name, "unable": "", "repetitions": found}


def unable(cell: Cell, name: str) -> str:
    """Why a cell cannot be disturbed so; "" where it can."""
    if name == "reload" and not cell.variant.reload:
        return "has no reload"
    if name == "stall" and not cell.variant.timeout:
        return "has no timeout for workers, or none that a blocking handler exceeds"
    return "is one process without workers" if name == "kill" and "workers" not in cell.variant.supports else ""


def _variant(cell: Cell, name: str = "") -> Variant:
    variant = tuned(cell.variant, GRACE_S) if cell.tuned else cell.variant
    added = variant.timeout.replace("{timeout}", str(TIMEOUT_S)) if name == "stall" else ""
    return replace(variant, options=f"{variant.options} {added}".strip())


def _rolling(scene: Scene, stack: ExitStack, *, late_s: float) -> Section:
    """A second instance starts under traffic to the first; traffic moves `late_s` after the first gets its signal."""
    seat = scene.observer.seat()
    scene.first.signaller.ask(Clock())
    begin = clock_of(scene.observer.agent).monotonic_ns + NS // 2
    signal_ns = begin + int(ROLLING_S * NS)
    switch = signal_ns + int(late_s * NS)
    load = _Load(scene.observer, (scene.first.url, seat.url), begin, signal_ns + int(AFTER_S * NS), switch)
    second = start_ready(scene.engine, scene.plan, scene.cell, _variant(scene.cell), seat, asker="signaller")
    stack.callback(second.stop)
    if clock_of(second.signaller).monotonic_ns > min(signal_ns, switch) - NS // 2:
        load.requests()
        raise ServerFailed(f"the second instance was not ready within {ROLLING_S:.0f} s")
    own = scene.cell.variant.shutdown.signal if scene.cell.tuned and scene.cell.variant.shutdown else "SIGTERM"
    scene.first.signaller.ask(Signal(pid=scene.first.root_pid, name=own, at_ns=signal_ns))
    return disturbance(load.requests(), signal_ns)


def _signalled(scene: Scene, _stack: ExitStack, *, target: Callable[[Scene], tuple[int, SignalName]]) -> Section:
    """One signal to a process of the server under traffic."""
    pid, name = target(scene)
    scene.first.signaller.ask(Clock())
    begin = clock_of(scene.observer.agent).monotonic_ns + NS // 2
    signal_ns = begin + int(BEFORE_S * NS)
    load = _Load(scene.observer, (scene.first.url,), begin, signal_ns + int(AFTER_S * NS), signal_ns)
    scene.first.signaller.ask(Signal(pid=pid, name=name, at_ns=signal_ns))
    return disturbance(load.requests(), signal_ns)


def _stalled(scene: Scene, _stack: ExitStack) -> Section:
    """One request takes longer than a worker may, under traffic."""
    begin = clock_of(scene.first.signaller).monotonic_ns + NS // 2
    event_ns = begin + int(BEFORE_S * NS)
    load = _Load(scene.observer, (scene.first.url,), begin, event_ns + int(AFTER_S * NS), event_ns)
    milliseconds = 2 * TIMEOUT_S * 1000
    slow = question(scene.first.url, f"/sleep/{milliseconds}", b'{"slept_ms":%d}' % milliseconds)
    call = Steady(targets=(slow,), rate=1, begin_ns=event_ns, end_ns=event_ns + 1, connections=1)
    (arrival,) = scene.first.signaller.ask(call, timeout_s=60).requests
    return {**disturbance(load.requests(), event_ns), "slow": arrival.kind or "answered"}


def _root(scene: Scene) -> tuple[int, SignalName]:
    signal = scene.cell.variant.reload
    assert signal  # held by `unable`
    return scene.first.root_pid, signal


def _worker(scene: Scene) -> tuple[int, SignalName]:
    """A process that answers, and is not the root. Raises ServerFailed."""
    call = Fetch(requests=(Request(url=scene.first.url + "/fingerprint"),))
    for _ in range(20):
        pid = read_fingerprint(scene.observer.agent.ask(call).answers[0].body).pid
        if pid is not None and pid != scene.first.root_pid:
            return pid, "SIGKILL"
    raise ServerFailed("no process but its root answers: there is no worker to kill")


CASES: Mapping[str, Callable[[Scene, ExitStack], Section]] = {
    "rolling": partial(_rolling, late_s=-0.1),
    "late": partial(_rolling, late_s=0.5),
    "reload": partial(_signalled, target=_root),
    "kill": partial(_signalled, target=_worker),
    "stall": _stalled,
}


class _Load:
    """Steady arrivals in the background, from the moment that it is made."""

    def __init__(self, observer: Observer, urls: Sequence[str], begin: int, end: int, switch: int) -> None:
        call = Steady(
            targets=tuple(question(url, PATH, BODY) for url in urls),
            rate=RATE,
            begin_ns=begin,
            end_ns=end,
            switch_ns=switch,
            connections=CONNECTIONS,
        )
        self._outcome: list[Accounted | LoadFailed] = []
        self._thread = Thread(target=self._run, args=(observer.agent, call), daemon=True)
        self._thread.start()

    def _run(self, agent: Agent, call: Steady) -> None:
        try:
            self._outcome.append(agent.ask(call, timeout_s=60))
        except LoadFailed as error:
            self._outcome.append(error)

    def requests(self) -> Sequence[Arrival]:
        """All of them, once they have ended. Raises LoadFailed."""
        self._thread.join()
        (outcome,) = self._outcome
        if isinstance(outcome, LoadFailed):
            raise outcome
        return outcome.requests


def disturbance(requests: Sequence[Arrival], at: int) -> Section:
    """What an event at `at` did: requests lost by kind, ms of latency added, seconds until it is as before.

    Bins of 100 ms. Latency is added where a bin's median exceeds the median before. All is as before after the last bin
    with a loss, or with a median above the longest latency before; None where less than half a second is left then.
    """
    before = [_latency_ms(one) for one in requests if one.due_ns < at and not one.kind]
    if not before:
        raise LoadFailed("no right answer before the event")
    usual, longest = median(before), max(before)
    lost: Counter[str] = Counter(one.kind for one in requests if one.kind)
    after = [one for one in requests if one.due_ns >= at]
    bins = [list(group) for _, group in groupby(after, lambda one: one.due_ns // BIN_NS)]
    middles = [median(map(_latency_ms, group)) for group in bins]
    bad = [
        at for at, (middle, group) in enumerate(zip(middles, bins, strict=True))
        if middle > longest or any(one.kind for one in group)
    ]  # fmt: skip
    calm_from = max(bad, default=-1) + 1
    return {
        "requests": len(requests),
        "lost": dict(lost),
        "added_ms": round(max(0.0, max(middles) - usual), 1),
        "normal_after_s": round(calm_from * BIN_NS / NS, 1) if calm_from + CALM_BINS <= len(bins) else None,
    }


def _latency_ms(arrival: Arrival) -> float:
    return (arrival.end_ns - arrival.due_ns) / MS
