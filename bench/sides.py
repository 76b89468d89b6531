"""What the benches of the method measure: one server of the catalogue under several names, each with its own /cpu/N.

A side is such a name. The sides share variant, image and command, and are launched apart, so that two of them with
the same N are an A/A pair, and a greater N is a slow-down in the app that is known beforehand.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from types import FrameType

from bench.slices import Slice, slice_of
from loadgen.contract import Expect
from orchestrator.engines.choose import EngineName, choose_engine
from orchestrator.engines.protocol import Engine, Launch, Running
from orchestrator.errors import LoadFailed, SpecError
from orchestrator.images.plan import ROOT, images_of
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.matrix.models import Axes, Matrix, Schedule, Suite, Workload
from orchestrator.probes.checks import learn_answer, wait_ready
from orchestrator.probes.events import Emit
from orchestrator.probes.images import build_all, failure_of
from orchestrator.probes.launching import Plan, start_server
from orchestrator.probes.load.ceiling import responder
from orchestrator.probes.load.measure import drive
from orchestrator.probes.placement import place
from orchestrator.probes.results import Failure

RAW_APPS = ("raw-asgi", "raw-wsgi", "raw-rsgi")
SUITE = "method"


@dataclass(frozen=True)
class Sides:
    """A plan, and the cell of each side in it."""

    plan: Plan
    cells: Mapping[str, Cell]

    def only(self, *names: str) -> Sides:
        """The same with fewer sides."""
        cells = {name: self.cells[name] for name in names}
        return Sides(replace(self.plan, cells=tuple(cells.values())), cells)

    def with_seed(self, seed: int) -> Sides:
        return Sides(replace(self.plan, seed=seed), self.cells)


def matrix_of(server: str, iterations: Mapping[str, int], connections: int, schedule: Schedule) -> Matrix:
    """matrix.yaml with a workload `cpu-SIDE` for each side, and one suite that holds `server` alone."""
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    workloads = {f"cpu-{side}": Workload(path=f"/cpu/{count}") for side, count in iterations.items()}
    wanted = {"server": server, "app": list(RAW_APPS), "workload": list(workloads), "connections": connections}
    axes = Axes.model_validate(wanted)
    suite = Suite(baseline=server, axes=axes, schedule=schedule)
    return matrix.model_copy(update={"workloads": {**matrix.workloads, **workloads}, "suites": {SUITE: suite}})


def cells_of(matrix: Matrix) -> dict[str, Cell]:
    """The cell of each side, by side. All but the first side's servers have the side's name in their own.

    Raises SpecError where the suite's server is not one variant.
    """
    cells = expand(matrix, SUITE).cells
    if len({cell.launch_id for cell in cells}) > 1:
        names = ", ".join(dict.fromkeys(cell.variant.name for cell in cells))
        raise SpecError("several variants are of that name", next_step=f"name one: {names}")
    found = {cell.workload.removeprefix("cpu-"): cell for cell in cells}
    first = next(iter(found))
    return {side: cell if side == first else _named(cell, side) for side, cell in found.items()}


def _named(cell: Cell, side: str) -> Cell:
    return cell.only(variant=replace(cell.variant, variant=f"{cell.variant.variant}-{side}"))


def sides_of(engine: Engine, matrix: Matrix, emit: Emit) -> Sides:
    """Build what the sides need, and plan them. Raises BuildFailed, LoadFailed, EnvironmentProblem."""
    cells = cells_of(matrix)
    images = {}
    _, made = build_all(engine, images_of(matrix, tuple(cells.values())), emit)
    for key, image in made.items():
        if isinstance(image, Failure) or failure_of(image):
            failure = failure_of(image)
            raise LoadFailed(f"{key.id}: {failure.reason if failure else 'no image'}")
        images[key] = image
    placement = place(matrix.cpus, engine.facts.cpus)
    schedule = matrix.suites[SUITE].schedule
    return Sides(Plan(matrix, tuple(cells.values()), images, schedule, placement, seed=1), cells)


@dataclass(frozen=True)
class Server:
    """A server that runs and answers right, and the load for it."""

    running: Running
    workload: Workload
    expected: Expect
    connections: int

    def slice(self, warmup_s: float, slice_s: float) -> Slice:
        """Load it for `slice_s` seconds. Raises LoadFailed, also where an answer was not right."""
        load = drive(self.running, self.workload, self.expected, self.connections, warmup_s, slice_s)
        return slice_of(load)


@contextmanager
def started(engine: Engine, sides: Sides, name: str) -> Iterator[Server]:
    """The server of a side, started and checked by the product's own code. Raises LoadFailed where it does not run."""
    cell = sides.cells[name]
    found = start_server(engine, sides.plan, cell)
    if isinstance(found, Failure):
        raise LoadFailed(f"{name}: {found.reason}")
    try:
        workload, expected = sides.plan.matrix.workloads[cell.workload], found.answers[cell.workload]
        if isinstance(expected, Failure):
            raise LoadFailed(f"{name}: {expected.reason}")
        yield Server(found.running, workload, expected, cell.connections)
    finally:
        found.running.stop()


@contextmanager
def null_server(engine: Engine, sides: Sides, body_bytes: int, connections: int) -> Iterator[Server]:
    """The load generator's null responder, as a run measures its ceiling with it. Raises MatrixError."""
    workload = Workload(path=f"/bytes/{body_bytes}", expect_bytes=body_bytes)
    image = engine.prepare(lambda _: None)
    launch = Launch(f"null·{body_bytes}", image, responder(body_bytes), "", 1, None, False, sides.plan.placement)
    running = engine.start(launch)
    try:
        wait_ready(running, workload, running.agent)
        yield Server(running, workload, learn_answer(running, workload), connections)
    finally:
        running.stop()


def cost_us(found: Slice) -> float:
    """CPU of a request in µs; where the machine does not tell, the time between two answers of a busy server."""
    return found.cpu_us or 1e6 / found.rps


def slowed(iterations: int, empty_us: float, full_us: float, slow_down: float) -> int:
    """The iterations with which a whole request costs `slow_down` more than with `iterations`.

    A request costs c(N) = a + bN: `empty_us` is c(0), `full_us` c(iterations). Asked is the M with c(M) =
    (1 + slow_down) c(N), so M = N + slow_down c(N) / b. Raises ValueError where the loop costs nothing.
    """
    if full_us <= empty_us:
        raise ValueError(f"{iterations} iterations cost nothing that can be measured: {empty_us} and {full_us} us")
    return round(iterations * (1 + slow_down * full_us / (full_us - empty_us)))


def calibrate(engine: Engine, sides: Sides, *, pairs: int, slice_s: float) -> tuple[float, float]:
    """Medians of what a request costs on either of two sides, in µs, from slices in the order ABBA."""
    one, other = sides.cells
    found: dict[str, list[float]] = {one: [], other: []}
    with started(engine, sides, one) as first, started(engine, sides, other) as second:
        servers = {one: first, other: second}
        for name in (one, other, other, one) * ((pairs + 1) // 2):
            found[name].append(cost_us(servers[name].slice(0.1, slice_s)))
    return median(found[one]), median(found[other])


@contextmanager
def opened(name: EngineName, run: str) -> Iterator[Engine]:
    """An engine that is closed at the end, however it comes: Ctrl-C and SIGTERM leave nothing behind.

    SIGINT is asked for too, because a shell's background jobs are started without it.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    engine = choose_engine(name, run, ROOT / ".cache")
    try:
        yield engine
    finally:
        engine.close()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
