"""Memory at rest, before any load: of workers that start one after the other, and where nothing can be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.memory import Behaviour, MemoryEngine, MemoryServer
from orchestrator.engines.protocol import Launch, Seat
from orchestrator.evidence.model import Record
from orchestrator.judge.assemble import rounds_of
from orchestrator.matrix.expand import expand
from orchestrator.pipeline import Order, run
from orchestrator.probes import checks
from tests.unit.probes.conftest import MATRIX, Runner

REST = {"cpu_s": 0.3, "processes": 3, "wanting": 0, "rss_bytes": 90, "pss_bytes": 60}
STARTS: dict[str, tuple[list[dict[str, Any] | None], tuple[int | None, int | None]]] = {
    "workers come": ([{**REST, "processes": 2, "rss_bytes": 50}, {**REST, "rss_bytes": 70}, REST], (90, 60)),
    "a worker imports": ([{**REST, "cpu_s": 0.1, "rss_bytes": 50}, {**REST, "cpu_s": 0.2}, REST, REST], (90, 60)),
    "a worker gets no CPU": (
        [{**REST, "wanting": 1, "rss_bytes": 50}, {**REST, "wanting": 1, "rss_bytes": 50}, REST],
        (90, 60),
    ),
    "shared pages are another user's": ([{**REST, "pss_bytes": None}], (90, None)),
    "no /proc": ([None], (None, None)),
}


class Starting(MemoryServer):
    """Its samples are those of a list, the last one for ever."""

    samples: list[dict[str, Any] | None]

    def _sample(self, pid: int) -> dict[str, Any]:
        sample = self.samples.pop(0) if len(self.samples) > 1 else self.samples[0]
        return {"ok": sample is not None, "sample": sample}


class StartingEngine(MemoryEngine):
    def __init__(self, samples: list[dict[str, Any] | None]) -> None:
        super().__init__()
        self._samples = samples

    def start(self, launch: Launch, seat: Seat | None = None) -> MemoryServer:
        server = Starting(self, launch, Behaviour())
        server.samples = list(self._samples)
        return server


def waitress(engine: MemoryEngine, folder: Path) -> Record:
    _, records = run(Order(MATRIX, expand(MATRIX, "smoke"), folder, 1), engine, lambda _: None)
    return next(record for record in records if record.cell.server == "waitress")


@pytest.fixture(autouse=True)
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "REST_S", 0.002)


@pytest.mark.parametrize("name", STARTS)
def test_memory_at_rest(name: str, tmp_path: Path) -> None:
    samples, found = STARTS[name]
    record = waitress(StartingEngine(samples), tmp_path)
    assert record.summary is not None
    assert (record.summary.memory_idle_bytes, record.summary.memory_idle_pss_bytes) == found
    assert [(round_.idle_rss_bytes, round_.idle_pss_bytes) for round_ in record.rounds] == [found] * 2


def test_a_server_that_never_rests_is_not_waited_for(tmp_path: Path) -> None:
    spinning: list[dict[str, Any] | None] = [{**REST, "cpu_s": second / 10} for second in range(1000)]
    assert waitress(StartingEngine(spinning), tmp_path).rounds[0].idle_rss_bytes == REST["rss_bytes"]


def test_a_record_gives_its_checks_back(tmp_path: Path) -> None:
    record = waitress(MemoryEngine(), tmp_path)
    kept = [round_.check for round_ in rounds_of(record) if round_.check]
    assert [(check.idle_rss_bytes, check.idle_pss_bytes) for check in kept] == [(40_000_000, 30_000_000)] * 2


def test_memory_is_shared_out_over_workers_and_cpu_compared(run_smoke: Runner) -> None:
    """At the load generator's limit the order by CPU stays: waitress does the same with half the CPU."""

    def halved(load: dict[str, Any]) -> dict[str, Any]:
        return load | {"server": load["server"] | {"cpu_s": load["server"]["cpu_s"] / 2}}

    bound = Behaviour(rps=9000, noise=0, client_share=0.95)
    _, records = run_smoke({"uvicorn/standard": bound, "waitress/threads": replace(bound, load=halved)})
    summary, baseline = records["waitress"].summary, records["uvicorn"].summary
    assert summary is not None
    assert summary.cpu_ratio is not None
    assert summary.ratio_bound == "?"
    assert summary.cpu_ratio.value == pytest.approx(2.0)
    assert summary.memory_per_worker_bytes == summary.memory_pss_bytes == 30_000_000
    assert baseline is not None
    assert baseline.cpu_ratio is not None
    assert baseline.cpu_ratio.value == 1.0
