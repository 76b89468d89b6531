"""Memory at rest, before any load: of workers that start one after the other, and where nothing can be read."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from msgspec.structs import replace

from loadgen.contract import Failed, LoadResult, Mistake, Sample, Sampled, TakeSample
from orchestrator.engines.memory import Behaviour, MemoryEngine, MemoryServer
from orchestrator.engines.protocol import Launch, Seat
from orchestrator.evidence.model import Record
from orchestrator.judge.assemble import rounds_of
from orchestrator.matrix.expand import expand
from orchestrator.pipeline import Order, run
from orchestrator.probes import checks
from tests.unit.loads import changed
from tests.unit.probes.conftest import MATRIX, Runner

REST = Sample(
    cpu_s=0.3, user_s=0.2, system_s=0.1, processes=3, wanting=0, rss_bytes=90, pss_bytes=60, peak_rss_bytes=90, ended=0,
    threads=3, voluntary_switches=0, involuntary_switches=0,
)  # fmt: skip
LATER = replace(REST, wanting=1, rss_bytes=50)
STARTS: dict[str, tuple[list[Sample | None], tuple[int | None, int | None]]] = {
    "workers come": ([replace(REST, processes=2, rss_bytes=50), replace(REST, rss_bytes=70), REST], (90, 60)),
    "a worker imports": ([replace(REST, cpu_s=0.1, rss_bytes=50), replace(REST, cpu_s=0.2), REST, REST], (90, 60)),
    "a worker gets no CPU": ([LATER, LATER, REST], (90, 60)),
    "shared pages are another user's": ([replace(REST, pss_bytes=None)], (90, None)),
    "no /proc": ([None], (None, None)),
}


class Starting(MemoryServer):
    """Its samples are those of a list, the last one for ever."""

    samples: list[Sample | None]

    def sample(self, call: TakeSample) -> Sampled | Failed:
        sample = self.samples.pop(0) if len(self.samples) > 1 else self.samples[0]
        return Sampled(sample=sample) if sample else Failed(error=Mistake("spec", "there is no process to be read"))


class StartingEngine(MemoryEngine):
    def __init__(self, samples: list[Sample | None]) -> None:
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
    spinning: list[Sample | None] = [replace(REST, cpu_s=second / 10) for second in range(1000)]
    assert waitress(StartingEngine(spinning), tmp_path).rounds[0].idle_rss_bytes == REST.rss_bytes


def test_a_record_gives_its_checks_back(tmp_path: Path) -> None:
    record = waitress(MemoryEngine(), tmp_path)
    kept = [round_.check for round_ in rounds_of(record) if round_.check]
    assert [(check.idle_rss_bytes, check.idle_pss_bytes) for check in kept] == [(40_000_000, 30_000_000)] * 2


def test_memory_is_shared_out_over_workers_and_cpu_compared(run_smoke: Runner) -> None:
    """At the load generator's limit the order by CPU stays: waitress does the same with half the CPU."""

    def halved(load: LoadResult) -> LoadResult:
        assert load.server
        return changed(load, server={"cpu_s": load.server.cpu_s / 2})

    bound = Behaviour(rps=9000, noise=0, client_share=0.95)
    _, records = run_smoke({"uvicorn/standard": bound, "waitress/threads": dataclasses.replace(bound, load=halved)})
    summary, baseline = records["waitress"].summary, records["uvicorn"].summary
    assert summary is not None
    assert summary.cpu_ratio is not None
    assert summary.ratio_bound == "?"
    assert summary.cpu_ratio.value == pytest.approx(2.0)
    assert summary.memory_per_worker_bytes == summary.memory_pss_bytes == 30_000_000
    assert baseline is not None
    assert baseline.cpu_ratio is not None
    assert baseline.cpu_ratio.value == 1.0
