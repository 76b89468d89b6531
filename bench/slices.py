"""What the benches keep of a slice, and how its figures become the costs that estimators work on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from loadgen.contract import LoadResult
from orchestrator.errors import LoadFailed
from orchestrator.judge.summary import cpu_us_of, rps_of

Metric = Literal["rps", "cpu_us"]
METRICS: Mapping[Metric, str] = {"rps": "requests per second", "cpu_us": "server CPU per request"}


@dataclass(frozen=True)
class Slice:
    """Server and client CPU in µs per request; `cpu_us` is None where the machine does not tell.

    `client_share`: the client's CPU over wall time. `steal`: what a hypervisor took, as a share of one CPU.
    """

    rps: float
    cpu_us: float | None
    client_us: float
    client_share: float
    steal: float

    def value(self, metric: Metric) -> float | None:
        return self.rps if metric == "rps" else self.cpu_us

    def cost(self, metric: Metric) -> float:
        """The logarithm of what a request costs: of its time (1 / rps), or of its CPU. Noise makes it greater."""
        return -math.log(self.rps) if metric == "rps" else math.log(self.cpu_us or math.nan)


def slice_of(load: LoadResult) -> Slice:
    """The load generator's document, shortened. Raises LoadFailed where an answer was not right."""
    if load.wrong or not load.requests:
        raise LoadFailed(f"{load.requests} right answers, and {load.first_error}")
    client = load.client
    return Slice(
        rps=rps_of(load) or math.nan,
        cpu_us=cpu_us_of(load),
        client_us=(client.user_s + client.system_s) * 1e6 / load.requests,
        client_share=client.share,
        steal=max((cpu.steal for cpu in (load.host or {}).values()), default=0.0),
    )


def metrics_of(slices: Sequence[Slice]) -> list[Metric]:
    """The metrics that all slices have."""
    return [metric for metric in METRICS if all(one.value(metric) for one in slices)]
