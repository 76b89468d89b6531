"""A small matrix, and a run of it on the memory engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from orchestrator.engines.memory import Behaviour, MemoryEngine
from orchestrator.evidence.model import Record, RunFile
from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.pipeline import Order, run

MATRIX = load_matrix(ROOT / "matrix.yaml").matrix
Runner = Callable[..., tuple[RunFile, dict[str, Record]]]


@pytest.fixture
def run_smoke(tmp_path: Path) -> Runner:
    """Runs suite `smoke` with the given behaviours; records by server."""

    def go(behaviours: Mapping[str, Behaviour] | None = None, *, suite: str = "smoke", cpus: tuple[int, ...] = (0, 1),
           only: tuple[str, ...] = (), seed: int = 1) -> tuple[RunFile, dict[str, Record]]:  # fmt: skip
        engine = MemoryEngine(behaviours, cpus=cpus)
        order = Order(MATRIX, expand(MATRIX, suite, only=only), tmp_path / "run", seed)
        run_file, records = run(order, engine, lambda _: None)
        assert engine.started == engine.stopped
        return run_file, {record.cell.server: record for record in records}

    return go
