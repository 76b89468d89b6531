"""What figures are taken from: the values of slices, and what adds up, is shared out or compared over all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from loadgen.contract import LoadResult, ServerUse
from orchestrator.judge import latency, stats
from orchestrator.judge.stats import Interval
from orchestrator.probes.results import Round, Slice

FigureOf = Callable[[LoadResult], float | None]
"""How a figure is taken from a slice; None where it has none."""

Switches = Literal["voluntary_switches", "involuntary_switches"]
Most = Literal["rss_bytes", "pss_bytes", "peak_rss_bytes", "processes"]


def loads(rounds: Sequence[Round]) -> list[LoadResult]:
    return [slice_.load for round_ in rounds for slice_ in round_.slices]


def values(rounds: Sequence[Round], of: FigureOf) -> list[list[float]]:
    """One list of positive slice values per round; a slice that has none is left out."""
    return [
        [value for slice_ in round_.slices if (value := of(slice_.load)) is not None and value > 0] for round_ in rounds
    ]


def requests_of(load: LoadResult) -> int:
    """Right answers."""
    return load.requests


def errors_of(load: LoadResult) -> int:
    """Requests without a right answer."""
    return load.wrong


def client_s_of(load: LoadResult) -> float:
    """CPU of the load generator."""
    return load.client.user_s + load.client.system_s


def rps_of(load: LoadResult) -> float | None:
    """None without a right answer."""
    return load.rps if load.requests else None


def cpu_us_of(load: LoadResult) -> float | None:
    """CPU of the whole server tree for each right answer; None where it was not seen."""
    server = load.server
    if not server or not load.requests:
        return None
    return server.cpu_s * 1e6 / load.requests


def per_cpu_s_of(load: LoadResult) -> float | None:
    """Right answers for each second of CPU of the server tree: it stays true where the load generator is the limit."""
    cpu_us = cpu_us_of(load)
    return 1e6 / cpu_us if cpu_us else None


def ratio(own: Sequence[Round], reference: Sequence[Round], of: FigureOf) -> Interval | None:
    """Of a figure to that of another cell, pass by pass; None where no pass holds both."""
    pairs = [_pairs(one.slices, other.slices, of) for one, other in zip(own, reference, strict=False)]
    if not any(pairs):
        return None
    return stats.ratio(*([[pair[side] for pair in round_] for round_ in pairs] for side in (0, 1)))


def _pairs(own: Sequence[Slice], reference: Sequence[Slice], of: FigureOf) -> list[tuple[float, float]]:
    """The figures of slices of the same pass, where both have one."""
    both = ((of(one.load), of(other.load)) for one, other in zip(own, reference, strict=False))
    return [(one, other) for one, other in both if one and other]


def latencies(all_loads: Sequence[LoadResult], seen: latency.Histograms) -> dict[str, float]:
    mean = latency.mean(all_loads)
    return {**({} if mean is None else {"mean": mean}), **latency.percentiles(seen)}


def connections_opened(all_loads: Sequence[LoadResult]) -> float | None:
    """Connections opened anew for each right answer: a slice without one tells nothing of it."""
    found = ((load.requests, load.connections.per_request) for load in all_loads)
    known = [(requests, opened) for requests, opened in found if requests and opened is not None]
    return sum(requests * opened for requests, opened in known) / sum(n for n, _ in known) if known else None


def share_in_time(all_loads: Sequence[LoadResult]) -> float:
    """Of the requests that were due in all slices: those that were answered in time."""
    return sum(load.in_time for load in all_loads) / sum(load.due for load in all_loads)


def _servers(all_loads: Sequence[LoadResult]) -> list[ServerUse]:
    """The server's own figures, of the slices that have them."""
    return [server for load in all_loads if (server := load.server)]


def user_share(all_loads: Sequence[LoadResult]) -> float | None:
    """Share of the server's CPU in user space, over all slices: the kernel tells it in ticks of 10 ms only."""
    servers = _servers(all_loads)
    user, system = sum(s.user_s for s in servers), sum(s.system_s for s in servers)
    return user / (user + system) if user + system > 0 else None


def switches(all_loads: Sequence[LoadResult], field: Switches) -> float | None:
    """Context switches of the server tree for each right answer.

    The kernel forgets those of threads that ended: a slice where that left fewer than there were before counts not.
    """
    found = ((load.requests, getattr(server, field)) for load in all_loads if (server := load.server))
    seen = [(requests, switches) for requests, switches in found if switches >= 0]
    requests = sum(number for number, _ in seen)
    return sum(switches for _, switches in seen) / requests if requests else None


def largest(all_loads: Sequence[LoadResult], field: Most) -> int | None:
    known = (getattr(server, field) for server in _servers(all_loads))
    return max((size for size in known if size is not None), default=None)
