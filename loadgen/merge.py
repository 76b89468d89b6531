"""One LoadResult of those that several processes made at the same time."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from loadgen import histogram, proc, throttle
from loadgen.result import SCHEMA, connections, lateness
from loadgen.snapshot import Snapshot, kernel_use, server_use
from loadgen.spec import Json, LoadSpec


def merge(spec: LoadSpec, parts: list[Json], before: Snapshot, after: Snapshot, memory: proc.Memory) -> Json:
    """Counts add up, histograms add up exactly; what belongs to the machine was read once, by the parent."""
    requests = sum(part["requests"] for part in parts)
    late = [part["late"] for part in parts if part["late"]]
    reconnects, opened, resent = (_sum(parts, "connections", name) for name in ("reconnects", "opened", "resent"))
    return {
        "schema": SCHEMA,
        "spec": spec.to_json(),
        "warmup_s": max(part["warmup_s"] for part in parts),
        "elapsed_s": max(part["elapsed_s"] for part in parts),
        "requests": requests,
        "rps": sum(part["rps"] for part in parts),
        "latency": histogram.merge(part["latency"] for part in parts),
        "service": histogram.merge(part["service"] for part in parts) if late else None,
        "errors": _add(parts, "errors"),
        "first_error": next((part["first_error"] for part in parts if part["first_error"]), None),
        "connections": connections(opened, reconnects, requests, resent),
        "unanswered": unanswered(parts),
        "tls": _add(parts, "tls") if parts[0]["tls"] else None,
        "bytes": _add(parts, "bytes"),
        "client": _client(parts),
        "per_100ms": [sum(counts) for counts in zip_longest(*(part["per_100ms"] for part in parts), fillvalue=0)],
        "kernel": kernel_use(before, after),
        **_late(late, requests),
        "server": server_use(spec.watch_pid, before, after, memory),
        "host": proc.shares(before.cpus, after.cpus),
        "throttled": throttle.between(before.throttled, after.throttled),
    }


def unanswered(parts: list[Json]) -> Json:
    """The connections of all, and the oldest request of any."""
    ages = [part["unanswered"]["oldest_us"] for part in parts]
    oldest_us = max((age for age in ages if age is not None), default=None)
    return {"connections": _sum(parts, "unanswered", "connections"), "oldest_us": oldest_us}


def _client(parts: list[Json]) -> Json:
    """CPU adds up; each process may run on CPUs of its own, and all have the same limits."""
    cpus = {cpu for part in parts for cpu in part["client"]["cpus"] or ()}
    return {
        **{name: _sum(parts, "client", name) for name in ("user_s", "system_s", "involuntary_switches")},
        "share": _sum(parts, "client", "share") / len(parts),
        "cpus": sorted(cpus) or None,
        "limits": parts[0]["client"]["limits"],
    }


def _late(late: list[Json], requests: int) -> Json:
    if not late:
        return {"late": None, "client_late": False}
    longest_ns = int(max(part["max_us"] for part in late) * 1000)
    return lateness(sum(part["requests"] for part in late), longest_ns, requests)


def _sum(parts: list[Json], section: str, name: str) -> Any:
    return sum(part[section][name] for part in parts)


def _add(parts: list[Json], section: str) -> Json:
    return {name: _sum(parts, section, name) for name in parts[0][section]}
