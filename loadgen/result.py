"""What one slice came to, as the contract's LoadResult."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from loadgen import histogram, proc, throttle
from loadgen.contract import ERROR_KINDS, Connections, Late, LoadResult, LoadSpec, TlsUse, Traffic, Unanswered
from loadgen.openloop import LATE_NS, LATE_SHARE
from loadgen.snapshot import Snapshot, client_use, kernel_use, server_use
from loadgen.tally import Silent, Tally


@dataclass(frozen=True)
class Open:
    """Of an open loop: right answers before the stretch's end, requests sent late, greatest lateness."""

    in_time: int
    late: int
    late_max_ns: int


@dataclass(frozen=True)
class Stretch:
    """The timed stretch as it was: readings at both ends, ns of its warm-up and of itself, counts, answers by 10 ms."""

    before: Snapshot
    after: Snapshot
    warmup: int
    elapsed: int
    tally: Tally
    marks: list[int]
    opened_before: int
    opened: int
    memory: proc.Memory
    silent: Silent
    open: Open | None


def result(spec: LoadSpec, stretch: Stretch) -> LoadResult:
    """The LoadResult of a slice that ran in one process."""
    tally, before, after, loop = stretch.tally, stretch.before, stretch.after, stretch.open
    elapsed = stretch.elapsed / 1e9
    requests = len(tally.latencies)
    late = lateness(loop.late, loop.late_max_ns) if loop else None
    return LoadResult(
        spec=spec,
        warmup_s=stretch.warmup / 1e9,
        elapsed_s=elapsed,
        requests=requests,
        rps=(loop.in_time if loop else requests) / elapsed,
        latency=histogram.describe(tally.latencies),
        service=histogram.describe(tally.services) if loop else None,
        errors={kind: tally.errors[kind] for kind in ERROR_KINDS},
        first_error=tally.first_error,
        connections=connections(stretch.opened, stretch.opened - stretch.opened_before, requests, tally.resent),
        unanswered=unanswered(stretch.silent),
        tls=TlsUse(handshakes=tally.handshakes, resumed=tally.resumed) if spec.url.startswith("https:") else None,
        bytes=Traffic(sent=tally.sent, received=tally.received),
        client=client_use(before, after),
        per_100ms=per_100ms(stretch.marks, loop.in_time if loop else requests),
        kernel=kernel_use(before, after),
        late=late,
        client_late=is_late(late, requests),
        server=server_use(spec.watch_pid, before, after, stretch.memory),
        host=proc.shares(before.cpus, after.cpus),
        throttled=throttle.between(before.throttled, after.throttled),
    )


def connections(opened: int, reconnects: int, requests: int, resent: int) -> Connections:
    """The counts, and `per_request` from them."""
    per_request = reconnects / requests if requests else None
    return Connections(opened=opened, reconnects=reconnects, per_request=per_request, resent=resent)


def unanswered(silent: Silent) -> Unanswered:
    """The same in a LoadResult, the age in microseconds."""
    oldest_us = None if silent.oldest_ns is None else silent.oldest_ns / 1000
    return Unanswered(connections=silent.connections, oldest_us=oldest_us)


def per_100ms(marks: list[int], requests: int) -> tuple[int, ...]:
    """Right answers in each 100 ms of the stretch; the last entry may stand for less."""
    totals = [0, *marks[9::10], requests]
    return tuple(after - before for before, after in pairwise(totals))


def lateness(late: int, late_max_ns: int) -> Late:
    """Of an open loop, so many requests of which went out late."""
    return Late(bound_us=LATE_NS / 1000, max_us=late_max_ns / 1000, requests=late)


def is_late(late: Late | None, requests: int) -> bool:
    """Whether too many were, beside so many right answers; a closed loop is never late."""
    return late is not None and late.requests > LATE_SHARE * max(requests, 1)
