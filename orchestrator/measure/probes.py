"""The probes that take one cell at a time, by name. `load` is not among them: its cells share rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.cells.model import Cell
from orchestrator.engines.protocol import Engine
from orchestrator.images.plan import BuiltImage
from orchestrator.measure.results import Failure
from orchestrator.measure.rounds import Plan

Section = Mapping[str, Any]
"""What a probe found, as the fields of its own section of the record."""

Probe = Callable[[Engine, Plan, Cell, BuiltImage | Failure], Section | Failure]

PROBES: Mapping[str, Probe] = {}
