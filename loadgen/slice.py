"""One slice of load in this process: open, warm up, measure, tell."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns

from loadgen import proc
from loadgen.exchange import ring
from loadgen.loops import closed_loop
from loadgen.pool import Pool
from loadgen.result import Stretch, result
from loadgen.snapshot import pin, snapshot
from loadgen.spec import Json, LoadSpec
from loadgen.stream import address_of


def run(spec: LoadSpec, begin: int | None = None) -> Json:
    """Run the slice and return its LoadResult. `begin` (perf_counter_ns): when to start the warm-up.

    The warm-up uses the same connections as the stretch. The stretch ends with the first batch of
    answers that reaches its end, and its real length is what `elapsed_s` says. Raises SpecError.
    """
    pool = Pool(address_of(spec), ring(spec), spec.timeout_s)
    try:
        with _pinned(spec.cpus), _without_gc():
            stretch = _closed(spec, pool, begin or perf_counter_ns())
    finally:
        pool.close()
    return result(spec, stretch)


def _closed(spec: LoadSpec, pool: Pool, begin: int) -> Stretch:
    pool.open_all(spec.connections)
    start = begin + int(spec.warmup_s * 1e9)
    closed_loop(pool, start - _LISTING_NS, [])
    server = _server(spec)
    closed_loop(pool, start, [])
    pool.fresh_tally()
    opened, marks = pool.opened, list[int]()
    before = snapshot(server)
    closed_loop(pool, before.at + int(spec.duration_s * 1e9), marks)
    ended = perf_counter_ns()
    after = snapshot(_server(spec))
    pool.settle_bytes()
    return Stretch(
        before, after, ended, pool.tally, marks, opened, pool.opened, proc.memory(tuple(after.server))
    )


_LISTING_NS = (
    20_000_000  # before the stretch the server's tree is listed: not in it, as that takes milliseconds
)


def _server(spec: LoadSpec) -> tuple[int, ...]:
    return () if spec.watch_pid is None else proc.tree(spec.watch_pid)


@contextmanager
def _pinned(cpus: tuple[int, ...]) -> Iterator[None]:
    before = pin(cpus)
    try:
        yield
    finally:
        if before is not None:
            os.sched_setaffinity(0, before)


@contextmanager
def _without_gc() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
