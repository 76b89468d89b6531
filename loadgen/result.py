"""What one slice found, as the document `loadgen/1` (see schema/result.json)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from loadgen import histogram, proc, throttle
from loadgen.openloop import LATE_NS, LATE_SHARE
from loadgen.snapshot import Snapshot, client_use, kernel_use, server_use
from loadgen.spec import Json, LoadSpec
from loadgen.tally import Tally, Unanswered

SCHEMA = "loadgen/1"
KINDS = ("refused", "reset", "closed_early", "timeout", "status", "wrong_body", "protocol")


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
    unanswered: Unanswered
    open: Open | None


def result(spec: LoadSpec, stretch: Stretch) -> Json:
    """The LoadResult of a slice that ran in one process."""
    tally, before, after, loop = stretch.tally, stretch.before, stretch.after, stretch.open
    elapsed = stretch.elapsed / 1e9
    requests = len(tally.latencies)
    return {
        "schema": SCHEMA,
        "spec": spec.to_json(),
        "warmup_s": stretch.warmup / 1e9,
        "elapsed_s": elapsed,
        "requests": requests,
        "rps": (loop.in_time if loop else requests) / elapsed,
        "latency": histogram.describe(tally.latencies),
        "service": histogram.describe(tally.services) if loop else None,
        "errors": {kind: tally.errors[kind] for kind in KINDS},
        "first_error": _first_error(tally),
        "connections": connections(stretch.opened, stretch.opened - stretch.opened_before, requests, tally.resent),
        "unanswered": unanswered(stretch.unanswered),
        "tls": _tls(spec, tally),
        "bytes": {"sent": tally.sent, "received": tally.received},
        "client": client_use(before, after),
        "per_100ms": per_100ms(stretch.marks, loop.in_time if loop else requests),
        "kernel": kernel_use(before, after),
        **(lateness(loop.late, loop.late_max_ns, requests) if loop else {"late": None, "client_late": False}),
        "server": server_use(spec.watch_pid, before, after, stretch.memory),
        "host": proc.shares(before.cpus, after.cpus),
        "throttled": throttle.between(before.throttled, after.throttled),
    }


def connections(opened: int, reconnects: int, requests: int, resent: int) -> Json:
    """`opened` since the slice began, `reconnects` inside the stretch, `per_request` from the latter."""
    return {
        "opened": opened,
        "reconnects": reconnects,
        "per_request": reconnects / requests if requests else None,
        "resent": resent,
    }


def unanswered(found: Unanswered) -> Json:
    """The same in a LoadResult, the age in microseconds."""
    return {
        "connections": found.connections,
        "oldest_us": None if found.oldest_ns is None else found.oldest_ns / 1000,
    }


def per_100ms(marks: list[int], requests: int) -> list[int]:
    """Right answers in each 100 ms of the stretch; the last entry may stand for less."""
    totals = [0, *marks[9::10], requests]
    return [after - before for before, after in pairwise(totals)]


def lateness(late: int, late_max_ns: int, requests: int) -> Json:
    """`late` and `client_late` of an open loop with so many right answers."""
    numbers = {"bound_us": LATE_NS / 1000, "max_us": late_max_ns / 1000, "requests": late}
    return {"late": numbers, "client_late": late > LATE_SHARE * max(requests, 1)}


def _first_error(tally: Tally) -> Json | None:
    if tally.first_error is None:
        return None
    kind, detail = tally.first_error
    return {"kind": kind, "detail": detail}


def _tls(spec: LoadSpec, tally: Tally) -> Json | None:
    if not spec.url.startswith("https:"):
        return None
    return {"handshakes": tally.handshakes, "resumed": tally.resumed}
