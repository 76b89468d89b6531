"""The install probe: what installing a server came to, and whether that which is installed starts and answers."""

from __future__ import annotations

from orchestrator.engines.protocol import Engine
from orchestrator.images.plan import BuiltImage
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.expand import Selection
from orchestrator.probes.launching import Plan, start_server
from orchestrator.probes.results import Failure, Section

_SAID_BY_THE_CELL = ("schema", "mode")


START_S = 1.2
"""Seconds to start, check and stop a server: the reference run took 161 s for 136 cells, on Docker."""


def install_seconds(selection: Selection) -> float:
    """Estimate of the time to start each installed server once: an install is measured as its image is built."""
    return START_S * len(selection.cells)


def probe_install(engine: Engine, plan: Plan, cell: Cell, image: BuiltImage | Failure) -> Section | Failure:
    """The report of images/build/install.py, with `serves`, `ready_s` and `why_not`. A Failure: there is no image."""
    if isinstance(image, Failure):
        return image
    report = {name: value for name, value in image.install.items() if name not in _SAID_BY_THE_CELL}
    return {**report, **(_served(engine, plan, cell) if image.installed else {})}


def _served(engine: Engine, plan: Plan, cell: Cell) -> Section:
    started = start_server(engine, plan, cell)
    if isinstance(started, Failure):
        return {"serves": False, "why_not": started.reason}
    started.running.stop()
    if isinstance(wrong := started.answers[cell.workload], Failure):
        return {"serves": False, "why_not": wrong.reason}
    return {"serves": True, "ready_s": started.check.ready_s}
