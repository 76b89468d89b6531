"""One round: every server starts fresh, is checked, and its cells are measured in interleaved slices.

All servers of a round run at the same time, and idle but for the one that is measured, so that the drift of the
machine hits the cells alike; each pass over the cells has its own order, from the run's seed. An open loop's rate is
a share of what the closed one has reached in the round so far, so in the first pass the closed one comes first.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from msgspec.structs import replace

from loadgen.contract import Expect, Load, LoadResult, LoadSpec
from orchestrator.engines.ends import words_of
from orchestrator.engines.protocol import Engine, Running
from orchestrator.errors import AgentGone, LoadFailed, MatrixError, ServerFailed
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.expand import Selection
from orchestrator.matrix.models import Schedule, Workload
from orchestrator.probes.checks import ended, request_of
from orchestrator.probes.events import Emit, LaunchFailed, ServersUp, SliceDone
from orchestrator.probes.launching import Plan, Started, failure_at, start_server, undeclared_of
from orchestrator.probes.parallel import parallel
from orchestrator.probes.results import Check, Failure, Round, Slice

FIRST = 1
"""Number of the first round: what cannot work is found out in it."""
STARTS_AT_ONCE = 3
TIMEOUT_S = 10.0
LEAST_RATE = 0.001
"""Requests per second: the load generator's schema has no lower one."""


@dataclass(frozen=True)
class Refused:
    """A server that is not measured, and what was found of it, as far as its check came."""

    failure: Failure
    check: Check | None = None


@dataclass(frozen=True)
class Arrivals:
    """Of an open loop: requests per second, at random times (a Poisson process) that follow from the seed."""

    rate: float
    seed: int


def load_seconds(selection: Selection) -> float:
    """Estimate of the measuring time: timed stretches and warm-ups, and a second for each start of a server."""
    plan, launches = selection.schedule, len({cell.launch_id for cell in selection.cells})
    first = launches * (plan.first_warmup_s + 1.0)
    return plan.rounds * (first + len(selection.cells) * plan.slices * (plan.slice_s + plan.warmup_s))


def slice_order(plan: Plan, round_number: int, slice_number: int) -> list[Cell]:
    """The order of one pass over the cells: the same for the same seed, another for each pass.

    Cells with the same reference follow each other, so that what is compared is near in time, in random order both
    among such groups and inside them. In the first pass (0) a closed loop comes before the open ones that refer to it.
    """
    coins = random.Random(f"{plan.seed}/{round_number}/{slice_number}")
    groups: dict[str, list[Cell]] = {}
    for cell in coins.sample(plan.cells, len(plan.cells)):
        groups.setdefault(plan.references.get(cell.id, cell.id), []).append(cell)
    order = [cell for group in groups.values() for cell in group]
    return order if slice_number else _closed_first(order)


def _closed_first(order: Sequence[Cell]) -> list[Cell]:
    """Each closed loop and its open ones keep the places that they have together."""
    families: dict[str, list[Cell]] = defaultdict(list)
    for cell in order:
        families[cell.closed.id].append(cell)
    queues = {family: iter(sorted(cells, key=lambda cell: cell.open > 0)) for family, cells in families.items()}
    return [next(queues[cell.closed.id]) for cell in order]


def arrivals_seed(seed: int, round_number: int, slice_number: int) -> int:
    """The same for all cells of a pass, so that all get the same pattern of arrivals, stretched to their rates."""
    return random.Random(f"arrivals/{seed}/{round_number}/{slice_number}").getrandbits(32)


def measure_round(engine: Engine, plan: Plan, number: int, emit: Emit) -> dict[str, Round]:
    """Measure every cell once more. Returns the round of each cell by the cell's id; never raises for one server."""
    launches = {cell.launch_id: cell for cell in plan.cells}
    started: dict[str, Started | Refused] = {}

    def start(cell: Cell) -> None:
        found = started[cell.launch_id] = _start(engine, plan, cell, number)
        if isinstance(found, Refused):
            emit(LaunchFailed(number, cell.launch_id, found.failure.reason, number == FIRST))
        up = sum(isinstance(item, Started) for item in list(started.values()))
        emit(ServersUp(number, up, len(launches), failed=len(started) - up))

    try:
        parallel(start, list(launches.values()), STARTS_AT_ONCE)
        return _Slices(plan, number, started, emit).run()
    finally:
        up = [item.running for item in started.values() if isinstance(item, Started)]
        parallel(lambda running: running.stop(), up, STARTS_AT_ONCE)


def hopeless(failure: Failure | None) -> bool:
    """Whether what failed so in the first round is left alone in the others: it would fail so again."""
    return failure is not None and failure.stage in ("start", "check")


def _start(engine: Engine, plan: Plan, cell: Cell, number: int) -> Started | Refused:
    """A server to measure. In the first round it must be what its entry declares; later, a verdict tells."""
    found = start_server(engine, plan, cell)
    if isinstance(found, Failure):
        return Refused(found)
    undeclared = undeclared_of(found.check) if number == FIRST else None
    if undeclared is None:
        return found
    found.running.stop()
    return Refused(undeclared, found.check)


class _Slices:
    """The passes of one round over its cells."""

    def __init__(self, plan: Plan, number: int, started: Mapping[str, Started | Refused], emit: Emit) -> None:
        self._plan = plan
        self._number = number
        self._started = started
        self._emit = emit
        self._slices: dict[str, list[Slice]] = {cell.id: [] for cell in plan.cells}
        self._failures: dict[str, Failure] = {}
        self._warm: set[str] = set()
        self._over: dict[str, Failure] = {}  # by launch: a server that ended

    def run(self) -> dict[str, Round]:
        plan = self._plan
        for at in range(plan.schedule.slices):
            seed = arrivals_seed(plan.seed, self._number, at)
            for order, cell in enumerate(slice_order(plan, self._number, at)):
                self._measure(cell, at * len(plan.cells) + order, seed)
        return {cell.id: self._round(cell) for cell in plan.cells}

    def _measure(self, cell: Cell, order: int, seed: int) -> None:
        schedule = self._plan.schedule
        warmup_s = schedule.warmup_s if cell.launch_id in self._warm else schedule.first_warmup_s
        ready = self._ready(cell)
        if isinstance(ready, Failure):
            self._failures.setdefault(cell.id, ready)
        else:
            self._load(cell, *ready, warmup_s, order, seed)
        last = self._slices[cell.id][-1:]
        rps = last[0].load.rps if last and cell.id not in self._failures else None
        planned_s = _took_s(last[0].load, warmup_s, schedule) if rps is not None else 0.0
        self._emit(SliceDone(cell.id, rps, planned_s, order + 1, len(self._plan.cells) * schedule.slices))

    def _ready(self, cell: Cell) -> tuple[Running, Expect] | Failure:
        """The server to load and the right answer, or why there is none (any more)."""
        started = self._started[cell.launch_id]
        if isinstance(started, Refused):
            return started.failure
        failed = self._failures.get(cell.id) or self._over.get(cell.launch_id)
        expected = started.answers[cell.workload]
        return failed or (expected if isinstance(expected, Failure) else (started.running, expected))

    def _load(self, cell: Cell, running: Running, expected: Expect, warmup_s: float, order: int, seed: int) -> None:
        try:
            arrivals = self._arrivals(cell, seed)
            self._warm.add(cell.launch_id)
            found = _slice(self._plan, cell, running, expected, warmup_s, order, arrivals)
        except AgentGone as error:
            self._fail(cell, running, ended(running, error))
        except LoadFailed as error:
            self._fail(cell, running, error)
        else:
            self._slices[cell.id].append(found)
            if not _all_right(found.load) and (end := running.wait(0.0)):
                self._fail(cell, running, ServerFailed(words_of(end, running.log())))

    def _fail(self, cell: Cell, running: Running, error: MatrixError) -> None:
        """Of a server that has ended, all cells fail."""
        if isinstance(error, ServerFailed):
            error = ServerFailed(f"the server {error.what}")
            self._over[cell.launch_id] = failure_at("load", error, running)
        self._failures[cell.id] = failure_at("load", error, running)

    def _arrivals(self, cell: Cell, seed: int) -> Arrivals | None:
        """None for a closed loop. Raises LoadFailed where there is no throughput to take a share of."""
        if not cell.open:
            return None
        reached = [slice_.load.rps for slice_ in self._slices[cell.closed.id]]
        rate = median(reached) * cell.open / 100 if reached else 0.0
        if rate < LEAST_RATE:
            raise LoadFailed("the closed loop, of whose throughput its rate is a share, has no figure in this round")
        return Arrivals(rate, seed)

    def _round(self, cell: Cell) -> Round:
        started = self._started[cell.launch_id]
        return Round(self._number, started.check, tuple(self._slices[cell.id]), self._failures.get(cell.id))


def _took_s(load: LoadResult, warmup_s: float, schedule: Schedule) -> float:
    """Seconds of load as they are timed: the warm-up as long as it was, which is `warmup_s` or longer."""
    return (warmup_s if load.warmup_s is None else load.warmup_s) + schedule.slice_s


def _all_right(load: LoadResult) -> bool:
    return bool(load.requests) and not load.wrong


def _slice(
    plan: Plan, cell: Cell, running: Running, expected: Expect, warmup_s: float, order: int, arrivals: Arrivals | None
) -> Slice:
    workload = plan.matrix.workloads[cell.workload]
    began, cpu = datetime.now(UTC), time.process_time()
    load = drive(running, workload, expected, cell.connections, warmup_s, plan.schedule.slice_s, arrivals)
    rate = arrivals.rate if arrivals else None
    return Slice(order, began.isoformat(timespec="milliseconds"), load, time.process_time() - cpu, rate)


def drive(
    running: Running,
    workload: Workload,
    expected: Expect,
    connections: int,
    warmup_s: float,
    slice_s: float,
    arrivals: Arrivals | None = None,
) -> LoadResult:
    """One slice of load, in a closed loop or with these arrivals: the load generator's document. Raises LoadFailed."""
    request = request_of(workload, running)
    spec = LoadSpec(
        url=request.url,
        method=request.method,
        headers=request.headers,
        body=request.body,
        tls=request.tls,
        expect=expected,
        connections=connections,
        warmup_s=warmup_s,
        duration_s=slice_s,
        timeout_s=TIMEOUT_S,
        watch_pid=running.root_pid,
    )
    if arrivals:
        spec = replace(spec, loop="open", arrivals="poisson", rate=arrivals.rate, seed=arrivals.seed)
    return running.agent.ask(Load(spec=spec), timeout_s=warmup_s + slice_s + 2 * TIMEOUT_S + 20).result
