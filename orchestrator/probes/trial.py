"""Each server once, before anything is measured: built, started, checked as a round checks it, and stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.engines.protocol import Engine
from orchestrator.images.plan import BuiltImage, images_of
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.models import Matrix, Schedule
from orchestrator.probes.events import Emit
from orchestrator.probes.images import build_all, failure_of
from orchestrator.probes.launching import Plan, start_server, undeclared_of
from orchestrator.probes.placement import place
from orchestrator.probes.results import Check, Failure


@dataclass(frozen=True)
class Tried:
    """One launch: what was found of it, and why it would not be measured, or not in all its cells."""

    launch: str
    check: Check | None
    failures: tuple[Failure, ...]


def try_each(engine: Engine, matrix: Matrix, cells: tuple[Cell, ...], emit: Emit) -> Iterator[Tried]:
    """Try the launches of these cells one after the other. Raises what makes measuring impossible at all."""
    placement = place(matrix.cpus, engine.facts.cpus)
    _, images = build_all(engine, images_of(matrix, cells), emit)
    built = {key: image for key, image in images.items() if isinstance(image, BuiltImage)}
    plan = Plan(matrix, cells, built, Schedule(), placement, seed=1)
    for cell in {cell.launch_id: cell for cell in cells}.values():
        missing = failure_of(images[cell.image])
        yield Tried(cell.launch_id, None, (missing,)) if missing else _tried(engine, plan, cell)


def _tried(engine: Engine, plan: Plan, cell: Cell) -> Tried:
    found = start_server(engine, plan, cell)
    if isinstance(found, Failure):
        return Tried(cell.launch_id, None, (found,))
    found.running.stop()
    wrong = [answer for answer in found.answers.values() if isinstance(answer, Failure)]
    undeclared = undeclared_of(found.check)
    return Tried(cell.launch_id, found.check, (*([undeclared] if undeclared else []), *wrong))
