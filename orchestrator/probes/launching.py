"""How a probe gets a server: what a run has in common, the launch of a cell's server, and the check of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loadgen.contract import Expect
from orchestrator.engines.ends import last_lines
from orchestrator.engines.protocol import Engine, Launch, Placement, Running
from orchestrator.errors import CheckFailed, LoadFailed, MatrixError, ServerFailed
from orchestrator.images.plan import BuiltImage
from orchestrator.matrix.cell import Cell, ImageKey
from orchestrator.matrix.models import Matrix, Schedule
from orchestrator.matrix.resolved import Variant
from orchestrator.probes.checks import check_server, learn_answer
from orchestrator.probes.results import Check, Failure, Stage


@dataclass(frozen=True)
class Plan:
    """What stays the same over the rounds of a run. `cells` are those whose image is there.

    `references`: by cell id, the id of the cell that its ratio refers to, where it has one.
    """

    matrix: Matrix
    cells: tuple[Cell, ...]
    images: Mapping[ImageKey, BuiltImage]
    schedule: Schedule
    placement: Placement
    seed: int
    references: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Started:
    """A server that answers right, with the right answer of each workload, or why it has none."""

    running: Running
    check: Check
    answers: Mapping[str, Expect | Failure]


def start_server(engine: Engine, plan: Plan, cell: Cell) -> Started | Failure:
    """Start a cell's server and check its answers. A server that fails is stopped, and the Failure says why."""
    try:
        running = engine.start(launch_of(plan, cell, cell.variant))
    except ServerFailed as error:
        return Failure("start", error.what.removeprefix(f"{cell.launch_id}: "))
    try:
        check = check_server(running, plan.matrix.workloads["item"], cell.variant.declares)
        return Started(running, check, _answers(running, plan, cell))
    except (ServerFailed, LoadFailed) as error:
        failure = failure_at("check" if isinstance(error, CheckFailed) else "start", error, running)
        running.stop()
        return failure


def undeclared_of(check: Check) -> Failure | None:
    """The failure of a server that is not what its entry declares; None where it is."""
    if not check.mismatches:
        return None
    found = "; ".join(f"{one.field} is {one.found}, declared {one.declared}" for one in check.mismatches)
    return Failure("check", f"not as declared: {found} (fix the entry's options or what it declares)")


def _answers(running: Running, plan: Plan, cell: Cell) -> dict[str, Expect | Failure]:
    """The right answer of each workload that the server gets; one that it answers wrongly fails no other."""
    found: dict[str, Expect | Failure] = {}
    for name in sorted({other.workload for other in plan.cells if other.launch_id == cell.launch_id}):
        try:
            found[name] = learn_answer(running, plan.matrix.workloads[name])
        except CheckFailed as error:
            found[name] = failure_at("check", error, running)
    return found


def failure_at(stage: Stage, error: MatrixError, running: Running) -> Failure:
    return Failure(stage, error.what, last_lines(running.log()))


def launch_of(plan: Plan, cell: Cell, variant: Variant) -> Launch:
    """How a cell's server is started, as `variant` says: its own, or one that differs from it in the command."""
    return Launch(
        id=cell.launch_id,
        image=plan.images[cell.image],
        variant=variant,
        module=plan.matrix.apps[cell.app].module,
        workers=cell.workers,
        threads=cell.threads,
        tls=cell.tls,
        placement=plan.placement,
    )
