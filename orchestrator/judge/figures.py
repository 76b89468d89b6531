"""How the figures of a cell are taken from its slices: one row for each of orchestrator/figures.py.

`ALONE` are those of a cell by itself; `BESIDE` compare it with the cell that its ratios refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from loadgen.contract import LoadResult
from orchestrator.evidence.model import Summary
from orchestrator.figures import Estimate, RatioBound
from orchestrator.judge import latency, stats
from orchestrator.judge.stats import Interval, Spread
from orchestrator.judge.summary import (
    FigureOf,
    client_s_of,
    connections_opened,
    cpu_us_of,
    errors_of,
    largest,
    latencies,
    loads,
    per_cpu_s_of,
    ratio,
    requests_of,
    rps_of,
    share_in_time,
    switches,
    user_share,
    values,
)
from orchestrator.probes.results import Check, Round


@dataclass(frozen=True)
class CellSlices:
    """What the figures of a cell are taken from: its rounds, its workers, the null responder's requests per second."""

    rounds: Sequence[Round]
    workers: int = 1
    ceiling_rps: float | None = None
    open: bool = False

    @cached_property
    def loads(self) -> list[LoadResult]:
        return loads(self.rounds)

    @cached_property
    def requests(self) -> int:
        return sum(map(requests_of, self.loads))

    @cached_property
    def rates(self) -> list[list[float]]:
        """By round: those that an open loop was asked for."""
        return [[slice_.rate for slice_ in round_.slices if slice_.rate] for round_ in self.rounds]

    @cached_property
    def histograms(self) -> latency.Histograms:
        return latency.histograms(self.rounds)

    @cached_property
    def cpu(self) -> Interval | None:
        return self.interval(cpu_us_of)

    @cached_property
    def rps(self) -> Interval | None:
        return self.interval(rps_of)

    @cached_property
    def spread(self) -> Spread:
        return stats.spread(values(self.rounds, rps_of))

    @property
    def checks(self) -> list[Check]:
        return [round_.check for round_ in self.rounds if round_.check]

    def interval(self, of: FigureOf) -> Interval | None:
        """Over rounds and slices; None where no slice has it."""
        found = values(self.rounds, of)
        return stats.interval(found) if any(found) else None

    def cpu_part(self, *, user: bool) -> float | None:
        """What of the CPU for a right answer was spent in user space, or in the kernel."""
        share = user_share(self.loads)
        return None if self.cpu is None or share is None else self.cpu.value * (share if user else 1 - share)

    def idle(self, of: Callable[[Check], int | None]) -> int | None:
        """The largest of the rounds."""
        return max((size for check in self.checks if (size := of(check)) is not None), default=None)

    @property
    def ready_s(self) -> float | None:
        known = [[check.ready_s] for check in self.checks if check.ready_s > 0]
        return stats.centre(known) if known else None

    @property
    def per_worker(self) -> int | None:
        size = largest(self.loads, "pss_bytes")
        return size // self.workers if size else None


@dataclass(frozen=True)
class Pair:
    """A cell beside the one that its ratios refer to: none, or itself. `bound`: what such a ratio is worth."""

    own: CellSlices
    reference: CellSlices | None
    itself: bool
    bound: RatioBound

    def ratio(self, of: FigureOf) -> Interval | None:
        """Of the cell's figure to its reference's; a reference is 1 exactly."""
        found = ratio(self.own.rounds, self.reference.rounds, of) if self.reference else None
        return Interval(1.0, 1.0, 1.0) if found and self.itself else found

    @cached_property
    def rps_ratio(self) -> Interval | None:
        """None in an open loop, whose requests per second were asked for."""
        return None if self.own.open else self.ratio(rps_of)


def estimate(interval: Interval | None) -> Estimate | None:
    """As it is stored."""
    return Estimate(value=interval.value, low=interval.low, high=interval.high) if interval else None


ALONE: Mapping[str, Callable[[CellSlices], Any]] = {
    "slices": lambda cell: len(cell.loads),
    "requests": lambda cell: cell.requests,
    "errors": lambda cell: sum(map(errors_of, cell.loads)),
    "rps": lambda cell: estimate(cell.rps),
    "rate_asked": lambda cell: stats.centre(cell.rates) if any(cell.rates) else None,
    "rate_share": lambda cell: share_in_time(cell.loads) if any(cell.rates) else None,
    "ceiling_share": lambda cell: cell.rps.value / cell.ceiling_rps if cell.rps and cell.ceiling_rps else None,
    "between": lambda cell: cell.spread.between,
    "within": lambda cell: cell.spread.within,
    "latency_us": lambda cell: latencies(cell.loads, cell.histograms),
    "latency_intervals_us": lambda cell: (
        {name: estimate(one) for name, one in latency.intervals(cell.histograms).items()} if any(cell.rates) else {}
    ),
    "cpu_us_per_request": lambda cell: estimate(cell.cpu),
    "cpu_user_us_per_request": lambda cell: cell.cpu_part(user=True),
    "cpu_system_us_per_request": lambda cell: cell.cpu_part(user=False),
    "voluntary_switches_per_request": lambda cell: switches(cell.loads, "voluntary_switches"),
    "involuntary_switches_per_request": lambda cell: switches(cell.loads, "involuntary_switches"),
    "client_cpu_us_per_request": lambda cell: sum(map(client_s_of, cell.loads)) * 1e6 / cell.requests,
    "memory_bytes": lambda cell: largest(cell.loads, "rss_bytes"),
    "memory_pss_bytes": lambda cell: largest(cell.loads, "pss_bytes"),
    "memory_idle_bytes": lambda cell: cell.idle(lambda check: check.idle_rss_bytes),
    "memory_idle_pss_bytes": lambda cell: cell.idle(lambda check: check.idle_pss_bytes),
    "memory_peak_bytes": lambda cell: largest(cell.loads, "peak_rss_bytes"),
    "memory_per_worker_bytes": lambda cell: cell.per_worker,
    "processes": lambda cell: largest(cell.loads, "processes"),
    "connections_per_request": lambda cell: connections_opened(cell.loads),
    "ready_s": lambda cell: cell.ready_s,
}
BESIDE: Mapping[str, Callable[[Pair], Any]] = {
    "ratio": lambda pair: estimate(pair.rps_ratio),
    "ratio_bound": lambda pair: pair.bound if pair.rps_ratio and not pair.itself else "",
    "cpu_ratio": lambda pair: estimate(pair.ratio(per_cpu_s_of)),
}


def alone(cell: CellSlices) -> dict[str, Any] | None:
    """The figures of a cell by itself; None where no slice has a right answer in time."""
    return {name: taken(cell) for name, taken in ALONE.items()} if cell.rps else None


def summary(found: Mapping[str, Any], pair: Pair) -> Summary:
    """The figures of a cell by itself, with those that compare it."""
    return Summary.model_validate({**found, **{name: taken(pair) for name, taken in BESIDE.items()}})
