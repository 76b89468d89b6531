"""The two hot loops. Whatever is not a whole, right, expected answer goes to the pool."""

from __future__ import annotations

from time import perf_counter_ns

from loadgen.pool import Pool

TICK_NS = 10_000_000
TICK_S = TICK_NS / 1e9


def closed_loop(pool: Pool, until: int, marks: list[int]) -> None:
    """Keep every connection of `pool` busy until the clock (perf_counter_ns) shows `until`.

    Appends the number of right answers so far to `marks` for every 10 ms that have passed.
    """
    wait, examine = pool.poller.wait, pool.examine
    recv, send, exchanges, started, held = pool.recv, pool.send, pool.exchange, pool.started, pool.held
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
                    pool.unsent(fd, exchange.request[sent:])
            except OSError as error:
                pool.failed(fd, error)
        now = clock()
        while now >= tick:
            marks.append(len(answered))
            pool.tick(now)
            tick += TICK_NS
