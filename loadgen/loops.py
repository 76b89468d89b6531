"""The two hot loops. Whatever is not a whole, right, expected answer goes to the pool."""

from __future__ import annotations

from time import perf_counter_ns

from loadgen.openloop import Arrivals
from loadgen.pool import Pool

TICK_NS = 10_000_000
TICK_S = TICK_NS / 1e9


def closed_loop(pool: Pool, until: int, marks: list[int]) -> None:
    """Keep every connection of `pool` busy until the clock (perf_counter_ns) shows `until`.

    Appends the number of right answers so far to `marks` for every 10 ms that have passed.
    """
    wires, examine = pool.wires, pool.examine
    wait, recv, send = wires.poller.wait, wires.recv, wires.send
    exchanges, started, held = pool.exchange, pool.started, pool.held
    answered = pool.tally.latencies
    add, clock = answered.append, perf_counter_ns
    now = clock()
    tick = now + TICK_NS
    while now < until:
        size = pool.read_size
        for fd, _ in wait(TICK_S):
            try:
                data = recv[fd](size)
                now = clock()
                exchange = exchanges[fd]
                if data != exchange.fast or fd in held:
                    examine(fd, data, now)
                    continue
                add(now - started[fd])
                exchange.hits += 1
                started[fd] = now
                exchanges[fd] = exchange = exchange.next
                sent = send[fd](exchange.request)
                if sent != exchange.size:
                    wires.unsent(fd, exchange.request[sent:])
                    held[fd] = b""
            except OSError as error:
                pool.failed(fd, error)
        now = clock()
        while now >= tick:
            marks.append(len(answered))
            pool.tick(now)
            tick += TICK_NS


def open_loop(pool: Pool, arrivals: Arrivals, until: int, marks: list[int]) -> None:
    """Send each arrival at its time, or as soon after it as a connection is free, until `until`."""
    wait, recv, examine, ready = pool.wires.poller.wait_fine, pool.wires.recv, pool.examine, arrivals.free
    exchanges, started, due, held = pool.exchange, pool.started, pool.due, pool.held
    answered = pool.tally.latencies
    add, add_service, clock = answered.append, pool.tally.services.append, perf_counter_ns
    now = clock()
    tick = now + TICK_NS
    while now < until:
        arrivals.dispatch(now)
        pause = min(arrivals.next_due, tick, until) - clock()
        size = pool.read_size
        for fd, _ in wait(max(pause, 0) / 1e9):
            try:
                data = recv[fd](size)
                now = clock()
                exchange = exchanges[fd]
                if data != exchange.fast or fd in held or fd not in started:
                    examine(fd, data, now)
                    continue
                scheduled, sent = due.pop(fd), started.pop(fd)
                if scheduled >= pool.counted_from:
                    add(now - scheduled)
                    add_service(now - sent)
                exchange.hits += 1
                exchanges[fd] = exchange.next
                ready(fd, now)
            except OSError as error:
                pool.failed(fd, error)
        now = clock()
        while now >= tick:
            marks.append(len(answered))
            pool.tick(now)
            arrivals.expire(now)
            tick += TICK_NS


def drain(pool: Pool, arrivals: Arrivals, until: int) -> None:
    """Go on until every request of `arrivals` has its answer or its error, at most until `until`."""
    while not arrivals.over() and perf_counter_ns() < until:
        open_loop(pool, arrivals, perf_counter_ns() + TICK_NS, [])
        pool.tick(perf_counter_ns())
        arrivals.expire(perf_counter_ns())
