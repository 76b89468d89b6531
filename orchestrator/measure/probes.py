"""The probes that take one cell at a time, by name. `load` is not among them: its cells share rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orchestrator.cells.model import Cell
from orchestrator.engines.protocol import Engine
from orchestrator.images.plan import BuiltImage
from orchestrator.measure.deploy import probe_deploy
from orchestrator.measure.install import probe_install
from orchestrator.measure.results import Failure, Section
from orchestrator.measure.rounds import Plan
from orchestrator.measure.shutdown import probe_shutdown
from orchestrator.measure.startup import probe_startup

Probe = Callable[[Engine, Plan, Cell, BuiltImage | Failure], Section | Failure]

PROBES: Mapping[str, Probe] = {
    "install": probe_install,
    "startup": probe_startup,
    "shutdown": probe_shutdown,
    "deploy": probe_deploy,
}
