"""A server whose container has a CPU quota, on a real Docker Engine: the verdict, and the memory of a real tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.docker.options import LABEL_RUN
from orchestrator.evidence.model import Record
from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.pipeline import Order, run
from orchestrator.probes.events import Event, ServersUp

pytestmark = pytest.mark.docker
RUN = "test-throttled"
PERIOD_US, QUOTA_US = 100_000, 5_000


@pytest.fixture
def records(tmp_path: Path, client: Any) -> dict[str, Record]:
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    suite = matrix.suites["smoke"]
    short = suite.model_copy(update={"schedule": suite.schedule.model_copy(update={"rounds": 1})})
    matrix = matrix.model_copy(update={"suites": {**matrix.suites, "smoke": short}})
    engine = DockerEngine(RUN, client=client)

    def limit(event: Event) -> None:
        """Once it has started, waitress may use a twentieth of a CPU; uvicorn is left alone."""
        if isinstance(event, ServersUp):
            for container in client.containers.list(filters={"label": f"{LABEL_RUN}={RUN}"}):
                if "waitress" in container.attrs["Config"]["Image"]:
                    container.update(cpu_period=PERIOD_US, cpu_quota=QUOTA_US)

    try:
        _, made = run(Order(matrix, expand(matrix, "smoke"), tmp_path / "run"), engine, limit)
    finally:
        engine.close()
    return {record.cell.server: record for record in made}


def test_a_quota_is_seen_and_memory_is_told(records: dict[str, Record]) -> None:
    (verdict,) = [verdict for verdict in records["waitress"].verdicts if verdict.rule == "throttled"]
    assert verdict.text.startswith("a CPU quota stopped the server for ")
    assert "throttled" not in [verdict.rule for verdict in records["uvicorn"].verdicts]
    for record in records.values():
        figures = record.summary
        assert figures is not None
        assert figures.cpu_ratio is not None
        assert 5e6 < (figures.memory_idle_bytes or 0) <= (figures.memory_peak_bytes or 0) < 500e6
        assert 0 < (figures.memory_per_worker_bytes or 0) <= (figures.memory_bytes or 0)
        assert (figures.cpu_user_us_per_request or 0) > 0
        assert (figures.voluntary_switches_per_request or 0) + (figures.involuntary_switches_per_request or 0) > 0
