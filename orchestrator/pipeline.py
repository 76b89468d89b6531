"""matrix.yaml -> cells -> images -> measurement -> records, for one suite: the order of the stages and nothing else."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator.cells.expand import Selection
from orchestrator.cells.model import ImageKey
from orchestrator.engines.protocol import Engine, Placement
from orchestrator.errors import SpecError
from orchestrator.images.context import read_context
from orchestrator.images.plan import ROOT, BuiltImage, images_of
from orchestrator.measure.events import Emit, SliceDone, Told
from orchestrator.measure.images import build_all
from orchestrator.measure.placement import place
from orchestrator.measure.results import Failure, Round
from orchestrator.measure.rounds import Plan, measure_round
from orchestrator.records.assemble import Measured, records, rounds_of
from orchestrator.records.model import Record, RunFile
from orchestrator.records.store import read_run, write_records, write_run
from orchestrator.spec.models import Matrix

Images = Mapping[ImageKey, BuiltImage | Failure]


@dataclass
class Costs:
    """Where the time of a run went, in seconds of wall clock. `planned_s`: timed stretches and warm-ups."""

    images_s: float = 0.0
    rounds_s: float = 0.0
    planned_s: float = 0.0
    orchestrator_cpu_s: float = 0.0

    def told(self, cells: int) -> dict[str, float]:
        """With the overhead for each cell, and the share of a core that this program used while slices ran."""
        overhead = max(0.0, self.rounds_s - self.planned_s)
        found = {
            "images_s": self.images_s,
            "rounds_s": self.rounds_s,
            "planned_s": self.planned_s,
            "overhead_s_per_cell": overhead / max(1, cells),
            "orchestrator_cpu_share": self.orchestrator_cpu_s / self.planned_s if self.planned_s else 0.0,
        }
        return {name: round(value, 4) for name, value in found.items()}


@dataclass(frozen=True)
class Order:
    """What is asked for: the cells, the folder of the run, the seed of its random orders, whether to go on."""

    matrix: Matrix
    selection: Selection
    folder: Path
    seed: int = 1
    resume: bool = False


def run(order: Order, engine: Engine, emit: Emit) -> tuple[RunFile, list[Record]]:
    """Measure a suite, and leave its folder complete. The folder holds all whole rounds at any time.

    Raises SpecError where `resume` meets a run of another matrix, code, image or machine; EnvironmentProblem and
    BuildFailed where this machine cannot measure at all. A server's failure is a record.
    """
    costs = Costs()
    selection = order.selection
    placement = place(order.matrix.cpus, engine.facts.cpus)
    began = time.monotonic()
    engine.prepare(lambda text: emit(Told(text)))
    images = build_all(engine, images_of(order.matrix, selection.cells), emit)
    machine = engine.machine()
    costs.images_s = time.monotonic() - began
    run_file = _run_file(order, engine, placement, images, machine)
    done = _resumed(order, run_file) if order.resume else {}
    built = {key: image for key, image in images.items() if isinstance(image, BuiltImage)}
    cells = tuple(cell for cell in selection.cells if cell.image in built)
    plan = Plan(order.matrix, cells, built, selection.schedule, placement, order.seed)
    made = _write(order, run_file, images, done, placement, machine)
    first = max((len(rounds) for rounds in done.values()), default=0) + 1
    for number in range(first, selection.schedule.rounds + 1) if cells else ():
        began = time.monotonic()
        rounds = measure_round(engine, plan, number, _counting(emit, costs))
        costs.rounds_s += time.monotonic() - began
        costs.orchestrator_cpu_s += sum(s.orchestrator_s for r in rounds.values() for s in r.slices)
        done = {cell.id: (*done.get(cell.id, ()), rounds[cell.id]) for cell in cells}
        made = _write(order, run_file, images, done, placement, machine)
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    run_file = run_file.model_copy(update={"finished": finished, "complete": True, "costs": costs.told(len(cells))})
    write_run(order.folder, run_file)
    return run_file, made


def _counting(emit: Emit, costs: Costs) -> Emit:
    def count(event: Any) -> None:
        if isinstance(event, SliceDone):
            costs.planned_s += event.planned_s
        emit(event)

    return count


def _write(
    order: Order, run_file: RunFile, images: Images, done: Mapping[str, tuple[Round, ...]], placement: Placement,
    machine: Mapping[str, Any],
) -> list[Record]:  # fmt: skip
    selection = order.selection
    measured = [Measured(cell, images[cell.image], done.get(cell.id, ())) for cell in selection.cells]
    architecture = str(machine.get("machine", ""))
    made = records(selection.suite, selection.baseline, measured, placement, architecture)
    write_run(order.folder, run_file)
    write_records(order.folder, made)
    return made


def _resumed(order: Order, run_file: RunFile) -> dict[str, tuple[Round, ...]]:
    """The whole rounds of the earlier run. Raises SpecError where it may not be mixed with this one."""
    earlier, kept = read_run(order.folder)
    if earlier.fingerprint != run_file.fingerprint:
        raise SpecError(
            f"{order.folder} was measured with another matrix, code, image or machine, and cannot be gone on with",
            next_step="start a new run: leave out --resume",
        )
    return {record.id: rounds_of(record) for record in kept if record.rounds}


def _run_file(
    order: Order, engine: Engine, placement: Placement, images: Images, machine: Mapping[str, Any]
) -> RunFile:
    selection = order.selection
    code = code_version()
    digests = {key.id: image.digest if isinstance(image, BuiltImage) else image.reason for key, image in images.items()}
    same = {
        "matrix": order.matrix.model_dump(mode="json"),
        "cells": [cell.id for cell in selection.cells],
        "schedule": selection.schedule.model_dump(),
        "code": code["digest"],
        "images": digests,
        "engine": engine.facts.name,
        "cpu": machine.get("cpu_model"),
        "cpus": placement,
        "seed": order.seed,
    }
    return RunFile(
        id=order.folder.name,
        suite=selection.suite,
        baseline=selection.baseline,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        fingerprint=hashlib.sha256(json.dumps(same, sort_keys=True, default=asdict).encode()).hexdigest()[:16],
        code=code,
        engine=asdict(engine.facts),
        placement=asdict(placement),
        machine=dict(machine) | {"orchestrator_python": platform.python_version()},
        schedule=selection.schedule.model_dump(),
        seed=order.seed,
        cells=[cell.id for cell in selection.cells],
        left_out=[asdict(item) for item in selection.left_out],
    )


def code_version() -> dict[str, str]:
    """The commit where git knows it, and a digest of all that measures: orchestrator, load generator, images."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    try:
        commit = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=10).stdout.strip()
    except OSError:
        commit = ""
    files = [name for name in ("orchestrator", "loadgen", "images") if (ROOT / name).is_dir()]
    context = read_context(ROOT, files)
    kept = {name: content for name, content in context.files.items() if not name.endswith("ca.crt")}
    return {"commit": commit or "unknown", "digest": replace(context, files=kept).digest()}
