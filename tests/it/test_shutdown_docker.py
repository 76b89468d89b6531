"""The shutdown probe on a real Docker Engine: process 1 of a container, and nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.pipeline import Order, run

pytestmark = pytest.mark.docker
RUN = "test-shutdown"


def test_servers_that_keep_all_requests_or_drop_the_one_behind_or_ignore_the_signal(
    tmp_path: Path, client: Any
) -> None:
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    suite = matrix.suites["shutdown"]
    short = suite.model_copy(update={"schedule": suite.schedule.model_copy(update={"rounds": 2, "kill_after_s": 4.0})})
    matrix = matrix.model_copy(update={"suites": {**matrix.suites, "shutdown": short}})
    selection = expand(matrix, "shutdown", only=("uvicorn/standard*w1·c1", "waitress*t4·c1", "gunicorn/sync*w1·c1"))
    engine = DockerEngine(RUN, client=client)
    try:
        _, records = run(Order(matrix, selection, tmp_path / "run"), engine, lambda _: None)
        left = client.containers.list(all=True, filters={"label": f"appserver-matrix.run={RUN}"})
    finally:
        engine.close()
    found = {record.cell.server: record.shutdown.cases[0] for record in records if record.shutdown}
    outcomes = {"uvicorn": "answered", "waitress": "ignored", "gunicorn": "answered"}
    assert {name: case.outcome for name, case in found.items()} == outcomes
    assert found["gunicorn"].queued == {"reset": 2}  # it waited in the kernel's backlog
    assert found["waitress"].places == 4
    assert found["waitress"].exit_codes == {"killed": 2}
    assert all(case.pid1 for case in found.values())
    assert all(ending.received_ms is not None and ending.received_ms < -100
               for case in found.values() for ending in case.repetitions)  # fmt: skip
    assert left == []
