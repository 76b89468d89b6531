"""A real server whose workers end after so many requests: all its CPU is counted, and the row says so."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from loadgen import proc
from loadgen.contract import Load, LoadSpec, Signal, TakeSample, Wait
from orchestrator.engines.local import LocalEngine
from orchestrator.engines.protocol import Launch
from orchestrator.evidence.model import Record
from orchestrator.images.plan import ROOT, images_of
from orchestrator.matrix.expand import Selection, expand, one_flavour
from orchestrator.matrix.loading import load_matrix
from orchestrator.matrix.models import Matrix
from orchestrator.pipeline import Order, run
from orchestrator.probes.checks import request_of
from orchestrator.probes.placement import place

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not proc.available(), reason="needs Linux's /proc"),
]
TICKS_S = 0.05
PLAIN, RESTARTS = "gunicorn/gthread", "gunicorn/restarts"
VARIANT = """
extra: true
options: -k gthread --threads {threads} --max-requests 300
supports: [threads]
declares: {parser: gunicorn, worker_class: gunicorn.workers.gthread.ThreadWorker}
"""
SUITE = """
baseline: gunicorn/gthread
axes: {server: [gunicorn/gthread, gunicorn/restarts], app: [raw-wsgi], connections: 4}
schedule: {rounds: 2, slices: 2, slice_s: 0.7, warmup_s: 0.1, first_warmup_s: 0.2}
"""


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    document = yaml.safe_load((ROOT / "matrix.yaml").read_text(encoding="utf-8"))
    document["servers"]["gunicorn"]["variants"]["restarts"] = yaml.safe_load(VARIANT)
    document["suites"]["restarts"] = yaml.safe_load(SUITE)
    file = tmp_path_factory.mktemp("restarts") / "matrix.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return load_matrix(file).matrix


@pytest.fixture(scope="module")
def selection(matrix: Matrix) -> Selection:
    return one_flavour(expand(matrix, "restarts"))


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    made = LocalEngine(ROOT / ".cache")
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def records(
    matrix: Matrix, selection: Selection, engine: LocalEngine, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Record]:
    folder = tmp_path_factory.mktemp("restarts") / "run"
    _, made = run(Order(matrix, selection, folder), engine, lambda _: None)
    return {f"{record.cell.server}/{record.cell.variant}": record for record in made}


def cpu_us(record: Record) -> list[float]:
    loads: list[Mapping[str, Any]] = [slice_.load for round_ in record.rounds for slice_ in round_.slices]
    return [load["server"]["cpu_s"] * 1e6 / load["requests"] for load in loads]


def test_restarting_is_not_cheaper(records: dict[str, Record]) -> None:
    """Each slice with the CPU of its restarts: each of them starts an interpreter, so none costs less than without."""
    assert min(cpu_us(records[RESTARTS])) > 0.9 * min(cpu_us(records[PLAIN]))


def test_the_row_says_that_workers_restarted(records: dict[str, Record]) -> None:
    found = {
        name: [one for one in record.verdicts if one.rule == "workers_restarted"] for name, record in records.items()
    }
    assert found[PLAIN] == []
    assert [one.effect for one in found[RESTARTS]] == ["mark"]
    assert "ended" in found[RESTARTS][0].text


def test_no_cpu_of_the_tree_is_taken_for_others(matrix: Matrix, selection: Selection, engine: LocalEngine) -> None:
    """`host_saturated` takes for others' what is not the tree's: here that is all that the kernel charges for it.

    What the kernel charges to us for the whole server, once it has ended, is the witness.
    """
    cell = next(cell for cell in selection.cells if cell.variant.name == RESTARTS)
    image = engine.build(images_of(matrix, (cell,))[0], lambda _: None)
    placement = place(matrix.cpus, engine.facts.cpus)
    charged = _charged()
    running = engine.start(Launch("restarts", image, cell.variant, "raw_wsgi", 1, 4, False, placement))
    request = request_of(matrix.workloads["item"], running)
    running.agent.ask(Wait(request=request, deadline_s=20), timeout_s=30)
    before = running.agent.ask(TakeSample(pid=running.root_pid)).sample
    spec = LoadSpec(url=request.url, connections=4, duration_s=2.0, warmup_s=0.0, watch_pid=running.root_pid)
    load = running.agent.ask(Load(spec=spec), timeout_s=30).result
    after = running.agent.ask(TakeSample(pid=running.root_pid)).sample
    running.agent.ask(Signal(pid=running.root_pid, name="SIGTERM", at_ns=0))
    assert running.wait(20) is not None
    ended_s = 0.3  # what a server's end may take: interpreters that are taken down
    assert load.server
    assert load.server.ended + (load.server.born or 0) > 0
    assert load.server.cpu_s == pytest.approx(after.cpu_s - before.cpu_s, abs=TICKS_S)
    assert after.cpu_s - TICKS_S < _charged() - charged < after.cpu_s + ended_s


def _charged() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
