"""The figures of a cell over its rounds, and its ratio to the baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.judge import latency, stats
from orchestrator.judge.stats import Interval, Spread
from orchestrator.probes.load.result import Load, Server
from orchestrator.probes.results import Check, Round, Slice, due_of, in_time_of

Switches = Literal["voluntary_switches", "involuntary_switches"]
Most = Literal["rss_bytes", "pss_bytes", "peak_rss_bytes", "processes"]


@dataclass(frozen=True)
class Figures:
    """Over all slices of a cell. Latencies in microseconds, memory in bytes, CPU in microseconds per request.

    `memory_…` are of the whole tree: resident set and proportional set (`pss`), the largest at the end of any slice;
    `idle`, the largest of any round before its load; `peak`, what the largest sets of the processes come to.
    `rate_…` are of an open loop: requests per second asked for, and the share of those due that were answered in time;
    so is `latency_intervals_us`, since the latencies of a closed one are those of a queue, and say what rps says.
    """

    slices: int
    requests: int
    errors: int
    rps: Interval
    spread: Spread
    latency_us: Mapping[str, float]
    latency_intervals_us: Mapping[str, Interval]
    cpu_us: Interval | None
    cpu_user_us: float | None
    cpu_system_us: float | None
    voluntary_switches: float | None
    involuntary_switches: float | None
    client_cpu_us: float
    memory_bytes: int | None
    memory_pss_bytes: int | None
    memory_peak_bytes: int | None
    memory_idle_bytes: int | None
    memory_idle_pss_bytes: int | None
    processes: int | None
    connections_per_request: float | None
    ready_s: float | None
    rate_asked: float | None
    rate_share: float | None


def loads(rounds: Sequence[Round]) -> list[Load]:
    return [slice_.load for round_ in rounds for slice_ in round_.slices]


def values(rounds: Sequence[Round], of: Callable[[Load], float | None]) -> list[list[float]]:
    """One list of positive slice values per round; a slice that has none is left out."""
    return [
        [value for slice_ in round_.slices if (value := of(slice_.load)) is not None and value > 0] for round_ in rounds
    ]


def rps_of(load: Load) -> float | None:
    """None without a right answer."""
    return float(load["rps"]) if load["requests"] else None


def cpu_us_of(load: Load) -> float | None:
    """CPU of the whole server tree for each right answer; None where it was not seen."""
    server = load["server"]
    if not server or not load["requests"]:
        return None
    return float(server["cpu_s"] * 1e6 / load["requests"])


def per_cpu_s_of(load: Load) -> float | None:
    """Right answers for each second of CPU of the server tree: it stays true where the load generator is the limit."""
    cpu_us = cpu_us_of(load)
    return 1e6 / cpu_us if cpu_us else None


def ratio(own: Sequence[Round], reference: Sequence[Round], of: Callable[[Load], float | None]) -> Interval | None:
    """Of a figure to that of another cell, pass by pass; None where no pass holds both."""
    pairs = [_pairs(one.slices, other.slices, of) for one, other in zip(own, reference, strict=False)]
    if not any(pairs):
        return None
    return stats.ratio(*([[pair[side] for pair in round_] for round_ in pairs] for side in (0, 1)))


def _pairs(
    own: Sequence[Slice], reference: Sequence[Slice], of: Callable[[Load], float | None]
) -> list[tuple[float, float]]:
    """The figures of slices of the same pass, where both have one."""
    both = ((of(one.load), of(other.load)) for one, other in zip(own, reference, strict=False))
    return [(one, other) for one, other in both if one and other]


def figures(rounds: Sequence[Round]) -> Figures | None:
    """None where no slice has a right answer in time."""
    rps = values(rounds, rps_of)
    if not any(rps):
        return None
    all_loads = loads(rounds)
    requests = sum(load["requests"] for load in all_loads)
    cpu = values(rounds, cpu_us_of)
    cpu_us = stats.interval(cpu) if any(cpu) else None
    user_share = _user_share(all_loads)
    checks = [round_.check for round_ in rounds if round_.check]
    rates = [[slice_.rate for slice_ in round_.slices if slice_.rate] for round_ in rounds]
    seen = latency.histograms(rounds)
    client_s = sum(load["client"]["user_s"] + load["client"]["system_s"] for load in all_loads)
    return Figures(
        slices=len(all_loads),
        requests=requests,
        errors=sum(sum(load["errors"].values()) for load in all_loads),
        rps=stats.interval(rps),
        spread=stats.spread(rps),
        latency_us=_latencies(all_loads, seen),
        latency_intervals_us=latency.intervals(seen) if any(rates) else {},
        cpu_us=cpu_us,
        cpu_user_us=cpu_us.value * user_share if cpu_us and user_share is not None else None,
        cpu_system_us=cpu_us.value * (1 - user_share) if cpu_us and user_share is not None else None,
        voluntary_switches=_switches(all_loads, "voluntary_switches"),
        involuntary_switches=_switches(all_loads, "involuntary_switches"),
        client_cpu_us=client_s * 1e6 / requests,
        memory_bytes=_largest(all_loads, "rss_bytes"),
        memory_pss_bytes=_largest(all_loads, "pss_bytes"),
        memory_peak_bytes=_largest(all_loads, "peak_rss_bytes"),
        memory_idle_bytes=max((c.idle_rss_bytes for c in checks if c.idle_rss_bytes is not None), default=None),
        memory_idle_pss_bytes=max((c.idle_pss_bytes for c in checks if c.idle_pss_bytes is not None), default=None),
        processes=_largest(all_loads, "processes"),
        connections_per_request=_connections(all_loads),
        ready_s=_ready_s(checks),
        rate_asked=stats.centre(rates) if any(rates) else None,
        rate_share=sum(map(in_time_of, all_loads)) / sum(map(due_of, all_loads)) if any(rates) else None,
    )


def _latencies(all_loads: Sequence[Load], seen: latency.Histograms) -> dict[str, float]:
    mean = latency.mean(all_loads)
    return {**({} if mean is None else {"mean": mean}), **latency.percentiles(seen)}


def _connections(all_loads: Sequence[Load]) -> float | None:
    """Connections opened anew for each right answer: a slice without one tells nothing of it."""
    found = ((load["requests"], load["connections"]["per_request"]) for load in all_loads)
    known = [(requests, opened) for requests, opened in found if requests and opened is not None]
    return sum(requests * opened for requests, opened in known) / sum(n for n, _ in known) if known else None


def _ready_s(checks: Sequence[Check]) -> float | None:
    known = [[check.ready_s] for check in checks if check.ready_s > 0]
    return stats.centre(known) if known else None


def _servers(all_loads: Sequence[Load]) -> list[Server]:
    """The server's own figures, of the slices that have them."""
    return [server for load in all_loads if (server := load["server"])]


def _user_share(all_loads: Sequence[Load]) -> float | None:
    """Share of the server's CPU in user space, over all slices: the kernel tells it in ticks of 10 ms only."""
    servers = _servers(all_loads)
    user, system = sum(s.get("user_s", 0.0) for s in servers), sum(s.get("system_s", 0.0) for s in servers)
    return user / (user + system) if user + system > 0 else None


def _switches(all_loads: Sequence[Load], field: Switches) -> float | None:
    """Context switches of the server tree for each right answer.

    The kernel forgets those of threads that ended: a slice where that left fewer than there were before counts not.
    """
    found = ((load["requests"], server.get(field, -1)) for load in all_loads if (server := load["server"]))
    seen = [(requests, switches) for requests, switches in found if switches >= 0]
    requests = sum(number for number, _ in seen)
    return sum(switches for _, switches in seen) / requests if requests else None


def _largest(all_loads: Sequence[Load], field: Most) -> int | None:
    known = (server.get(field) for server in _servers(all_loads))
    return max((size for size in known if size is not None), default=None)
