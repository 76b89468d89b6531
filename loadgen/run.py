"""Run a slice: in this process, in several that share its connections, or by another generator."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter_ns
from typing import IO

from loadgen import proc
from loadgen import slice as one_process
from loadgen.engines import run_engine
from loadgen.errors import EngineError
from loadgen.merge import merge
from loadgen.snapshot import snapshot, watch
from loadgen.spec import Json, LoadSpec

HEADSTART_NS = 50_000_000  # between telling the workers and the common beginning


def load(spec: LoadSpec, begin: int | None = None, marks: list[int] | None = None) -> Json:
    """The LoadResult of a spec. Raises SpecError or EngineError. `begin` and `marks`: see slice.run."""
    if spec.engine != "builtin":
        return run_engine(spec)
    if spec.processes == 1:
        return one_process.run(spec, begin, marks)
    return _shared(spec)


def share(spec: LoadSpec, worker: int) -> LoadSpec:
    """The part of worker 0 … processes - 1: connections and rate shared out, one CPU, a seed of its own."""
    n = spec.processes
    return dataclasses.replace(
        spec,
        processes=1,
        connections=spec.connections // n + (worker < spec.connections % n),
        rate=spec.rate / n if spec.rate else None,
        seed=spec.seed + worker,
        cpus=(spec.cpus[worker % len(spec.cpus)],) if spec.cpus else (),
        watch_pid=None,
    )


def _shared(spec: LoadSpec) -> Json:
    """Every worker is an agent. All begin at one instant of the system-wide clock; constant arrivals interleave."""
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker()) for _ in range(spec.processes)]
        for worker in workers:
            _ask(worker, {"op": "hello"})
        for worker in workers:
            _answer(worker)
        begin = perf_counter_ns() + HEADSTART_NS
        for i, worker in enumerate(workers):
            offset = int(i / spec.rate * 1e9) if spec.rate else 0
            _ask(worker, {"op": "load", "spec": share(spec, i).to_json(), "begin_ns": begin + offset})
        start = begin + int(spec.warmup_s * 1e9)
        _sleep_until(start - one_process.LISTING_NS)
        watched = watch(spec.watch_pid)
        _sleep_until(start)
        before = snapshot(watched)
        _sleep_until(before.at + int(spec.duration_s * 1e9))
        after = snapshot(watch(spec.watch_pid))
        memory = proc.memory(after.server)
        return merge(spec, [_answer(worker)["result"] for worker in workers], before, after, memory)


def _sleep_until(instant: int) -> None:
    time.sleep(max(instant - perf_counter_ns(), 0) / 1e9)


Worker = subprocess.Popen[str]


@contextmanager
def _worker() -> Iterator[Worker]:
    command = [sys.executable, "-m", "loadgen", "agent"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        try:
            yield worker
        finally:
            worker.kill()


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None  # both are pipes
    return stream


def _ask(worker: Worker, question: Json) -> None:
    stdin = _pipe(worker.stdin)
    stdin.write(json.dumps(question) + "\n")
    stdin.flush()


def _answer(worker: Worker) -> Json:
    line = _pipe(worker.stdout).readline()
    answer: Json = json.loads(line) if line else {"ok": False, "error": {"message": "it ended without an answer"}}
    if not answer["ok"]:
        raise EngineError(f"worker process {worker.pid}: {answer['error']['message']}")
    return answer
