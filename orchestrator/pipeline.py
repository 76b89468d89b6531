"""matrix.yaml -> cells -> images -> measurement -> records, for one suite: the order of the stages and nothing else."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from loadgen.contract import Machine
from orchestrator.engines.protocol import Engine, Placement
from orchestrator.errors import SpecError
from orchestrator.evidence.model import CeilingRecord, Record, RunFile
from orchestrator.evidence.store import read_run, write_records, write_run
from orchestrator.images.plan import BuiltImage, images_of
from orchestrator.judge.assemble import Judging, Measured, evidence, judged, probed_record, rounds_of
from orchestrator.judge.judgement import code_version, judgement
from orchestrator.judge.precision import FEWEST, added, most_rounds, open_after, progress, stopped, unfinished
from orchestrator.matrix.cell import Cell, ImageKey
from orchestrator.matrix.expand import Selection
from orchestrator.matrix.models import Matrix
from orchestrator.probes.events import CellDone, Emit, Event, ServersUp, SliceDone, Told
from orchestrator.probes.images import build_all, failure_of
from orchestrator.probes.launching import Plan
from orchestrator.probes.load.ceiling import Ceiling, Comparison, ceilings
from orchestrator.probes.load.measure import hopeless
from orchestrator.probes.placement import place
from orchestrator.probes.probe import CellByCell, InRounds, Probe
from orchestrator.probes.registry import probe_named
from orchestrator.probes.results import Failure, Round

STOPPING = ("precision", "max_rounds", "extra_rounds")
"""Fields of a schedule that say when to stop, not how to measure: a run goes on under others."""

Images = Mapping[ImageKey, BuiltImage | Failure]


@dataclass
class Costs:
    """Where the time of a run went, in seconds of wall clock, over all that it was gone on with.

    `planned_s`: timed stretches and warm-ups, which the load probe alone has.
    """

    images_s: float = 0.0
    rounds_s: float = 0.0
    planned_s: float = 0.0
    orchestrator_cpu_s: float = 0.0

    @classmethod
    def so_far(cls, run: RunFile) -> Costs:
        """Those of a run that is gone on with."""
        known = {name: value or 0.0 for name, value in run.costs.items()}
        images, rounds, planned = (known.get(name, 0.0) for name in ("images_s", "rounds_s", "planned_s"))
        return cls(images, rounds, planned, known.get("orchestrator_cpu_share", 0.0) * planned)

    def told(self, cells: int) -> dict[str, float | None]:
        """With the overhead for each cell, and the share of a core that this program used while slices ran.

        None where nothing was timed, so that the time of measuring has no parts.
        """
        planned, overhead = self.planned_s or None, max(0.0, self.rounds_s - self.planned_s)
        found = {
            "images_s": self.images_s,
            "rounds_s": self.rounds_s,
            "planned_s": planned,
            "overhead_s_per_cell": overhead / max(1, cells) if planned else None,
            "orchestrator_cpu_share": self.orchestrator_cpu_s / planned if planned else None,
        }
        return {name: None if value is None else round(value, 4) for name, value in found.items()}


@dataclass(frozen=True)
class Order:
    """What is asked for: the cells, the folder of the run, the seed of its random orders, whether to go on."""

    matrix: Matrix
    selection: Selection
    folder: Path
    seed: int = 1
    resume: bool = False

    @property
    def probe(self) -> Probe:
        return probe_named(self.selection.probe)


@dataclass(frozen=True)
class Setting:
    """What stays the same while a run measures. `cells` are those whose image can run."""

    order: Order
    engine: Engine
    emit: Emit
    placement: Placement
    images: Images
    machine: Machine
    run_file: RunFile
    ceilings: Mapping[Comparison, Ceiling] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        images = {key: image for key, image in self.images.items() if isinstance(image, BuiltImage)}
        selection = self.order.selection
        cells = tuple(cell for cell in selection.cells if failure_of(self.images[cell.image]) is None)
        references = selection.references() if self.order.probe.settings.compares else {}
        return Plan(self.order.matrix, cells, images, selection.schedule, self.placement, self.order.seed, references)


def run(order: Order, engine: Engine, emit: Emit) -> tuple[RunFile, list[Record]]:
    """Measure a suite, and leave its folder complete. The folder holds all that is finished at any time.

    Raises SpecError where `resume` meets a run of another matrix, code, image or machine; EnvironmentProblem and
    BuildFailed where this machine cannot measure at all. A server's failure is a record.
    """
    before, earlier = read_run(order.folder) if order.resume else (None, [])
    costs = Costs.so_far(before) if before else Costs()
    setting = _set_up(order, engine, emit, costs)
    setting = _gone_on_with(setting, before) if before else setting
    write_run(order.folder, setting.run_file)
    made = _measured(setting, earlier, costs)
    judging = judgement() if isinstance(order.probe.how, InRounds) else None
    told: dict[str, Any] = {"finished": _now(), "complete": True, "judged": judging}
    told |= {"stopped": _why_stopped(setting, made)} if judging else {}
    return _tell_costs(setting, costs, told), made


def _set_up(order: Order, engine: Engine, emit: Emit, costs: Costs) -> Setting:
    began = time.monotonic()
    placement = place(order.matrix.cpus, engine.facts.cpus)
    loadgen, images = build_all(engine, images_of(order.matrix, order.selection.cells), emit)
    machine = engine.machine()
    costs.images_s += time.monotonic() - began
    run_file = _run_file(order, engine, placement, images, machine)
    setting = Setting(order, engine, emit, placement, images, machine, run_file)
    return _with_ceilings(setting, loadgen) if isinstance(order.probe.how, InRounds) else setting


def _with_ceilings(setting: Setting, loadgen: BuiltImage) -> Setting:
    found = ceilings(setting.engine, setting.plan, loadgen)
    told = [CeilingRecord(**asdict(one)) for one in dict.fromkeys(found.values())]
    return replace(setting, ceilings=found, run_file=setting.run_file.model_copy(update={"ceilings": told}))


def _measured(setting: Setting, earlier: Sequence[Record], costs: Costs) -> list[Record]:
    how = setting.order.probe.how
    if isinstance(how, InRounds):
        return _rounds(setting, earlier, how, costs)
    return _each_cell(setting, earlier, how, costs)


def _rounds(setting: Setting, earlier: Sequence[Record], how: InRounds, costs: Costs) -> list[Record]:
    """Rounds over the cells, records written after each round. An interrupted round leaves none."""
    done = {record.id: rounds_of(record) for record in earlier if record.rounds}
    made = _write_rounds(setting, done)
    first = max((rounds[-1].number for rounds in done.values()), default=0) + 1
    slices = Slices(setting, sum(len(round_.slices) for rounds in done.values() for round_ in rounds))
    for number in count(first):
        cells = _asked_for(setting, number, made)
        if not cells:
            break
        began = time.monotonic()
        plan = setting.plan
        slices.expect(len(cells), number)
        rounds: dict[str, Round] = {}
        for group in setting.order.selection.side_by_side(cells):
            rounds |= how.measure_round(setting.engine, replace(plan, cells=group), number, slices.counting(costs))
            slices.done += len(group) * plan.schedule.slices
        costs.orchestrator_cpu_s += sum(s.orchestrator_s for r in rounds.values() for s in r.slices)
        done |= {own: (*done.get(own, ()), round_) for own, round_ in rounds.items()}
        made = _write_rounds(setting, done, rounds)
        costs.rounds_s += time.monotonic() - began
        _tell_costs(setting, costs)
        _tell_precision(setting, number, made)
    return made


def _tell_costs(setting: Setting, costs: Costs, more: Mapping[str, Any] = MappingProxyType({})) -> RunFile:
    """Write the run's own file with what the run has cost so far."""
    run_file = setting.run_file.model_copy(update={"costs": costs.told(len(setting.plan.cells)), **more})
    write_run(setting.order.folder, run_file)
    return run_file


def _asked_for(setting: Setting, number: int, made: Sequence[Record]) -> tuple[Cell, ...]:
    """The cells of this round: all up to `rounds`, then those whose comparison is not precise enough; or none.

    What did not start or was not as declared in the first round is left out.
    """
    schedule = setting.plan.schedule
    given_up = {record.id for record in made for first in rounds_of(record)[:1] if hopeless(first.failure)}
    cells = tuple(cell for cell in setting.plan.cells if cell.id not in given_up)
    if number <= schedule.rounds:
        return cells
    if number > most_rounds(schedule):
        return ()
    wanted = unfinished(setting.order.selection, open_after(made, schedule))
    return tuple(cell for cell in cells if cell.id in wanted)


def _tell_precision(setting: Setting, number: int, made: Sequence[Record]) -> None:
    schedule = setting.plan.schedule
    if number < schedule.rounds:
        return
    text = progress(number, made, schedule.precision) if schedule.precision else added(number, made, schedule)
    if text:
        setting.emit(Told(text))


def _why_stopped(setting: Setting, made: Sequence[Record]) -> str:
    """Why no further round was measured; '' where nothing but the suite's number of rounds was to be reached."""
    schedule = setting.plan.schedule
    if schedule.precision:
        return stopped(made, schedule.precision)
    measured = max((len(record.rounds) for record in made), default=0)
    return added(measured, made, schedule) if measured >= schedule.rounds >= FEWEST else ""


@dataclass
class Slices:
    """The slices of a run so far: turns the events of a round, which counts its own, into those of the whole run."""

    setting: Setting
    done: int
    total: int | None = None

    def expect(self, cells: int, number: int) -> None:
        """From round `number` on there are so many cells: those that were given up before are not counted."""
        schedule = self.setting.plan.schedule
        ahead = max(schedule.rounds - number + 1, 1) * cells * schedule.slices
        self.total = None if schedule.precision else self.done + ahead

    def counting(self, costs: Costs) -> Emit:
        """Passes events on, and adds up the time that slices took."""
        schedule, emit = self.setting.plan.schedule, self.setting.emit
        rounds = f"{schedule.max_rounds} at most" if schedule.precision else str(schedule.rounds)

        def count_one(event: Event) -> None:
            if isinstance(event, SliceDone):
                costs.planned_s += event.planned_s
                event = replace(event, done=self.done + event.done, total=self.total)
            elif isinstance(event, ServersUp):
                beyond = not schedule.precision and event.round > schedule.rounds
                event = replace(event, rounds=f"{most_rounds(schedule)} at most" if beyond else rounds)
            emit(event)

        return count_one


def _write_rounds(setting: Setting, done: Mapping[str, tuple[Round, ...]], fresh: Collection[str] = ()) -> list[Record]:
    """The records of all cells. What is `fresh`, by cell id, is on disk before anything is judged."""
    selection, folder = setting.order.selection, setting.order.folder
    measured = [Measured(cell, setting.images[cell.image], done.get(cell.id, ())) for cell in selection.cells]
    found = evidence(selection, measured, setting.ceilings, setting.run_file.id)
    write_records(folder, [record for record in found if record.id in fresh])
    limits, architecture = setting.engine.facts.limits, setting.machine.machine or ""
    made = judged(found, Judging(setting.placement, architecture, limits, judgement()))
    write_records(folder, made)
    return made


def _each_cell(setting: Setting, earlier: Sequence[Record], how: CellByCell, costs: Costs) -> list[Record]:
    """A probe that takes one cell at a time: its record is written at once, and a resumed run skips it."""
    done = {record.id: record for record in earlier}
    selection = setting.order.selection
    made = []
    for at, cell in enumerate(selection.cells):
        image = setting.images[cell.image]
        record = done.get(cell.id)
        if record is None:
            began = time.monotonic()
            found = how.measure(setting.engine, setting.plan, cell, image)
            record = probed_record(selection, cell, image, found, setting.run_file.id)
            write_records(setting.order.folder, [record])
            costs.rounds_s += time.monotonic() - began
            _tell_costs(setting, costs)
        setting.emit(CellDone(cell.id, record.outcome, at + 1, len(selection.cells)))
        made.append(record)
    return made


def _gone_on_with(setting: Setting, earlier: RunFile) -> Setting:
    """Keeps the identity of the earlier run. Raises SpecError where its records may not be mixed with new ones."""
    if earlier.fingerprint != setting.run_file.fingerprint:
        raise SpecError(
            f"{setting.order.folder} was measured with another matrix, code, image or machine, and cannot be gone on "
            "with",
            next_step="start a new run: leave out --resume",
        )
    same = {"id": earlier.id, "started": earlier.started, "costs": earlier.costs}
    return replace(setting, run_file=setting.run_file.model_copy(update=same))


def _run_file(order: Order, engine: Engine, placement: Placement, images: Images, machine: Machine) -> RunFile:
    selection = order.selection
    code = code_version()
    digests = {key.id: image.digest if isinstance(image, BuiltImage) else image.reason for key, image in images.items()}
    same = {
        "matrix": order.matrix.model_dump(mode="json"),
        "cells": [cell.id for cell in selection.cells],
        "schedule": selection.schedule.model_dump(exclude=set(STOPPING)),
        "code": code["digest"],
        "images": digests,
        "engine": engine.facts.name,
        "cpu": machine.cpu_model,
        "cpus": placement,
        "seed": order.seed,
    }
    return RunFile(
        id=order.folder.name,
        suite=selection.suite,
        baseline=selection.baseline,
        started=_now(),
        fingerprint=hashlib.sha256(json.dumps(same, sort_keys=True, default=asdict).encode()).hexdigest()[:16],
        code=code,
        engine=asdict(engine.facts),
        placement=asdict(placement),
        machine=msgspec.to_builtins(machine) | {"orchestrator_python": platform.python_version()},
        schedule=selection.schedule.model_dump(),
        seed=order.seed,
        cells=[cell.id for cell in selection.cells],
        against=dict(selection.against),
        apart=list(selection.apart),
        view=selection.view.model_dump(mode="json"),
        left_out=[asdict(item) for item in selection.left_out],
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
