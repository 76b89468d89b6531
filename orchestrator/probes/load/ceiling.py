"""What the load generator can do here at all: each shape of load against the null responder that ships with it.

The responder runs as a server of the run does, in the same box and on the same CPUs, so a cell's throughput may be
read as a share of it. A cell near its ceiling says little about its server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from orchestrator.engines.protocol import Engine, Launch
from orchestrator.errors import LoadFailed, ServerFailed
from orchestrator.images.plan import BuiltImage
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.models import Declares, Workload
from orchestrator.matrix.resolved import Variant
from orchestrator.probes.checks import learn_answer, wait_ready
from orchestrator.probes.launching import Plan
from orchestrator.probes.load.measure import drive

Comparison = tuple[object, ...]
"""`Cell.comparison`."""

USUAL_BYTES = 23
"""The body where a workload does not say how long its answer is."""


@dataclass(frozen=True)
class Ceiling:
    """`rps` of the null responder; `client_share`: the load generator's CPU over wall time meanwhile."""

    body_bytes: int
    tls: bool
    connections: int
    rps: float
    client_share: float


def responder(body_bytes: int) -> Variant:
    """The null responder as an entry of the catalogue would describe it."""
    return Variant(
        server="null",
        variant=f"bytes-{body_bytes}",
        image="loadgen",
        protocol="",
        install=(),
        sdist_only=False,
        compiled=(),
        run=f"{{bin}}/python -m loadgen null --host {{host}} --port {{port}} --body-bytes {body_bytes} {{options}}",
        options="",
        tls="--cert {cert} --key {key}",
        env={"PYTHONPATH": "/opt/loadgen"},  # where its container has it; on the local engine it is installed
        supports=frozenset(),
        system={},
        declares=Declares(),
        note="",
    )


def ceilings(engine: Engine, plan: Plan, image: BuiltImage) -> Mapping[Comparison, Ceiling]:
    """The ceiling of each comparison of the plan's closed loops; one that could not be measured is left out.

    An open loop has none: its throughput is what it was asked for.
    """
    closed = [cell for cell in plan.cells if not cell.open]
    shapes = {cell.comparison: (_bytes(plan, cell), cell.tls, cell.connections) for cell in closed}
    found: dict[tuple[int, bool, int], Ceiling] = {}
    for body_bytes, tls in sorted({shape[:2] for shape in shapes.values()}):
        wanted = sorted({shape[2] for shape in shapes.values() if shape[:2] == (body_bytes, tls)})
        with suppress(ServerFailed, LoadFailed):
            made = _measured(engine, plan, image, body_bytes, tls, wanted)
            found |= {(one.body_bytes, one.tls, one.connections): one for one in made}
    return {comparison: found[shape] for comparison, shape in shapes.items() if shape in found}


def _bytes(plan: Plan, cell: Cell) -> int:
    workload = plan.matrix.workloads[cell.workload]
    known = None if workload.expect_body is None else len(workload.expect_body.encode())
    return known or workload.expect_bytes or USUAL_BYTES


def _measured(
    engine: Engine, plan: Plan, image: BuiltImage, body_bytes: int, tls: bool, connections: Sequence[int]
) -> list[Ceiling]:
    workload = Workload(path=f"/bytes/{body_bytes}", expect_bytes=body_bytes)
    launch = Launch(f"null·{body_bytes}", image, responder(body_bytes), "", 1, None, tls, plan.placement)
    running = engine.start(launch)
    try:
        wait_ready(running, workload, running.agent)
        expected, schedule = learn_answer(running, workload), plan.schedule
        made = []
        for number in connections:
            load = drive(running, workload, expected, number, schedule.warmup_s, schedule.slice_s)
            made.append(Ceiling(body_bytes, tls, number, load.rps, load.client.share))
        return made
    finally:
        running.stop()
