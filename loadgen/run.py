"""Run a slice: in this process, in several that share its connections, or by another generator."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter_ns
from typing import IO, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from loadgen import contract, proc
from loadgen import slice as one_process
from loadgen.contract import Call, Failed, Hello, Load, LoadResult, LoadSpec
from loadgen.engines import run_engine
from loadgen.errors import EngineError
from loadgen.merge import merge
from loadgen.snapshot import snapshot, watch

HEADSTART_NS = 50_000_000  # between telling the workers and the common beginning


def load(spec: LoadSpec, begin: int | None = None, marks: list[int] | None = None) -> LoadResult:
    """The LoadResult of a spec. Raises SpecError or EngineError. `begin` and `marks`: see slice.run."""
    if spec.engine != "builtin":
        return run_engine(spec)
    if spec.processes == 1:
        return one_process.run(spec, begin, marks)
    return _shared(spec)


def share(spec: LoadSpec, worker: int) -> LoadSpec:
    """The part of worker 0 … processes - 1: connections and rate shared out, one CPU, a seed of its own."""
    n = spec.processes
    return replace(
        spec,
        processes=1,
        connections=spec.connections // n + (worker < spec.connections % n),
        rate=spec.rate / n if spec.rate else None,
        seed=spec.seed + worker,
        cpus=(spec.cpus[worker % len(spec.cpus)],) if spec.cpus else (),
        watch_pid=None,
    )


def _shared(spec: LoadSpec) -> LoadResult:
    """Every worker is an agent. All begin at one instant of the system-wide clock; constant arrivals interleave."""
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker()) for _ in range(spec.processes)]
        for worker in workers:
            _ask(worker, Hello())
        for worker in workers:
            _answer(worker, Hello())
        begin = perf_counter_ns() + HEADSTART_NS
        calls = [Load(spec=share(spec, i), begin_ns=begin + _offset(spec, i)) for i in range(spec.processes)]
        for worker, call in zip(workers, calls, strict=True):
            _ask(worker, call)
        start = begin + int(spec.warmup_s * 1e9)
        _sleep_until(start - one_process.LISTING_NS)
        watched = watch(spec.watch_pid)
        _sleep_until(start)
        before = snapshot(watched)
        _sleep_until(before.at + int(spec.duration_s * 1e9))
        after = snapshot(watch(spec.watch_pid))
        memory = proc.memory(after.server)
        parts = [_answer(worker, call).result for worker, call in zip(workers, calls, strict=True)]
        return merge(spec, parts, before, after, memory)


def _offset(spec: LoadSpec, worker: int) -> int:
    """How much later a worker begins, in ns, so that constant arrivals interleave."""
    return int(worker / spec.rate * 1e9) if spec.rate else 0


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


A = TypeVar("A", bound=Struct)


def _ask(worker: Worker, call: Call[Any]) -> None:
    stdin = _pipe(worker.stdin)
    stdin.write(contract.encode(call) + "\n")
    stdin.flush()


def _answer(worker: Worker, call: Call[A]) -> A:
    line = _pipe(worker.stdout).readline()
    if not line:
        raise EngineError(f"worker process {worker.pid}: it ended without an answer")
    answer = contract.decode_answer(line, call)
    if isinstance(answer, Failed):
        raise EngineError(f"worker process {worker.pid}: {answer.error.message}")
    return answer
