"""One slice of load in this process: open, warm up, measure, tell."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns

from loadgen import proc
from loadgen.affinity import pinned
from loadgen.contract import LoadResult, LoadSpec
from loadgen.exchange import ring
from loadgen.loops import TICK_NS, closed_loop, drain, open_loop
from loadgen.openloop import Arrivals, schedule
from loadgen.pool import Pool
from loadgen.result import Open, Stretch, result
from loadgen.snapshot import Snapshot, Watched, snapshot, watch
from loadgen.stream import resolve
from loadgen.tally import Silent
from loadgen.wires import Wires

LISTING_NS = 20_000_000  # so long before the stretch the server's tree is listed, which takes milliseconds
LONGER = 4  # a warm-up is longer by at most so many times its own length …
LONGER_NS = 2_000_000_000  # … and by at most so much


def run(spec: LoadSpec, begin: int | None = None, marks: list[int] | None = None) -> LoadResult:
    """Run the slice and return its LoadResult. `begin` (perf_counter_ns): when to start the warm-up.

    `marks` gets, while the stretch runs, the number of right answers so far, every 10 ms.

    The warm-up uses the same connections as the stretch. A closed loop's goes on, after `warmup_s`, until every
    connection has had an answer, up to a bound (`_warm_up`); with `begin` given it does not, for whoever gave it
    begins others at the same time. A closed loop's stretch ends with the first
    batch of answers that reaches its end, and its real length is what `elapsed_s` says. An open loop's
    consists of the requests that are due in it, and each gets its answer or its error. Raises SpecError.
    """
    wires = Wires(resolve(spec.url, spec.tls), spec.timeout_s)
    pool = Pool(wires, ring(spec), spec.timeout_s)
    measure = _closed if spec.loop == "closed" else _open
    try:
        with pinned(spec.cpus), _without_gc():
            stretch = measure(spec, pool, begin, [] if marks is None else marks)
    finally:
        wires.close()
    return result(spec, stretch)


def _closed(spec: LoadSpec, pool: Pool, begin: int | None, marks: list[int]) -> Stretch:
    began = begin or perf_counter_ns()
    watched = _warm_up(spec, pool, began, 0 if begin else _longer(spec))
    pool.fresh_tally()
    opened = pool.wires.opened
    before = snapshot(watched)
    closed_loop(pool, before.at + _ns(spec.duration_s), marks)
    end = perf_counter_ns()
    silent = pool.silent(before.at, end)
    return _stretch(spec, pool, before, (before.at - began, end - before.at), marks, opened, silent)


def _warm_up(spec: LoadSpec, pool: Pool, began: int, longer: int) -> Watched:
    """Load for `warmup_s`, and up to `longer` ns more until every connection has had an answer; list the server's tree.

    The first answers of many connections may take longer than `warmup_s` at a slow server. One that never answers some
    of its connections (verdict `starved`) is not waited for.
    """
    start = until = began + _ns(spec.warmup_s)
    pool.open_all(spec.connections)
    opened = now = perf_counter_ns()
    closed_loop(pool, start - LISTING_NS, [])
    while pool.silent(opened, now).connections and (now := perf_counter_ns()) < start + longer - LISTING_NS:
        closed_loop(pool, now + TICK_NS, [])
        pool.tick(now)
        until = perf_counter_ns() + LISTING_NS
    watched = watch(spec.watch_pid)
    closed_loop(pool, until, [])
    return watched


def _longer(spec: LoadSpec) -> int:
    return min(LONGER * _ns(spec.warmup_s), LONGER_NS)


def _open(spec: LoadSpec, pool: Pool, begin: int | None, marks: list[int]) -> Stretch:
    begin = begin or perf_counter_ns()
    start = begin + _ns(spec.warmup_s)
    end = start + _ns(spec.duration_s)
    arrivals = Arrivals(pool, schedule(spec, begin, end), spec.timeout_s)
    pool.counted_from = start
    pool.open_all(spec.connections)
    open_loop(pool, arrivals, start - LISTING_NS, [])
    watched = watch(spec.watch_pid)
    open_loop(pool, arrivals, start, [])
    pool.fresh_tally()
    opened = pool.wires.opened
    before = snapshot(watched)
    open_loop(pool, arrivals, end, marks)
    silent = arrivals.silent(start, end)
    open_ = Open(len(pool.tally.latencies), arrivals.late, arrivals.late_max)
    drain(pool, arrivals, end + 2 * _ns(spec.timeout_s))
    return _stretch(spec, pool, before, (start - begin, end - start), marks, opened, silent, open_)


def _stretch(
    spec: LoadSpec,
    pool: Pool,
    before: Snapshot,
    lasted: tuple[int, int],
    marks: list[int],
    opened: int,
    silent: Silent,
    open_: Open | None = None,
) -> Stretch:
    """`lasted`: ns of the warm-up, and of the stretch."""
    after = snapshot(watch(spec.watch_pid))
    pool.settle_bytes()
    memory = proc.memory(after.server)
    return Stretch(before, after, *lasted, pool.tally, marks, opened, pool.wires.opened, memory, silent, open_)


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


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
