"""The probes that take one cell at a time, by name. `load` is not among them: its cells share rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orchestrator.engines.protocol import Engine
from orchestrator.images.plan import BuiltImage
from orchestrator.matrix.cell import Cell
from orchestrator.probes.deploy.measure import probe_deploy
from orchestrator.probes.install.measure import probe_install
from orchestrator.probes.load.measure import Plan
from orchestrator.probes.results import Failure, Section
from orchestrator.probes.shutdown.measure import probe_shutdown
from orchestrator.probes.startup.measure import probe_startup

Probe = Callable[[Engine, Plan, Cell, BuiltImage | Failure], Section | Failure]

PROBES: Mapping[str, Probe] = {
    "install": probe_install,
    "startup": probe_startup,
    "shutdown": probe_shutdown,
    "deploy": probe_deploy,
}
