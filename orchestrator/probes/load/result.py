"""The load generator's document of one slice, as it is read here: loadgen/schema/result.json with its nulls typed.

What may be null, or is absent in records of before it was measured, says so in its type, so that mypy finds a reader
that takes it for granted. Only fields that are read are named; the rest of the document is stored as it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict


class Latency(TypedDict):
    """In µs. `mean` is None without a right answer; `histogram`: HDR V2, compressed, in base64."""

    mean: float | None
    histogram: str


class Connections(TypedDict):
    """`per_request`: opened anew for each right answer; None without one."""

    per_request: float | None


class Unanswered(TypedDict):
    """`connections`: asked before the stretch, and without an answer until its end."""

    connections: int


class Client(TypedDict):
    """CPU of the load generator in seconds; `share`: over wall time. `cpus`, `limits`: what the kernel allows it."""

    user_s: float
    system_s: float
    share: float
    cpus: NotRequired[Sequence[int] | None]
    limits: NotRequired[Mapping[str, int | None]]


class Server(TypedDict):
    """The server's whole process tree. Context switches are less than 0 where threads ended meanwhile.

    `born`, `ended`: processes that were not there before, and that are not there any more; `ended_s`: their CPU.
    """

    cpu_s: float
    user_s: float
    system_s: float
    rss_bytes: int
    pss_bytes: int | None
    peak_rss_bytes: int
    processes: int
    born: NotRequired[int]
    ended: int
    ended_s: NotRequired[float]
    cpus: NotRequired[Sequence[int] | None]
    limits: NotRequired[Mapping[str, int | None]]
    voluntary_switches: int
    involuntary_switches: int


class Cpu(TypedDict):
    """Shares of one CPU's time."""

    busy: float
    steal: float


class Quota(TypedDict):
    """What a CPU quota held back: seconds over all CPUs."""

    periods: int
    seconds: float


class Throttled(TypedDict):
    """`heat`: by CPU, how often it slowed down. None where the counter may not be read."""

    client: Quota | None
    server: Quota | None
    heat: Mapping[str, int] | None


class Late(TypedDict):
    """Of an open loop: requests that the load generator itself sent too late."""

    bound_us: float
    max_us: float
    requests: int


class FirstError(TypedDict):
    """The first request that got no right answer."""

    kind: str
    detail: str


class Load(TypedDict):
    """One slice. `requests`: right answers; `rps`: those inside the stretch, by the second; `host`: by CPU (`cpu0`)."""

    warmup_s: NotRequired[float]
    elapsed_s: float
    requests: int
    rps: float
    latency: Latency
    errors: Mapping[str, int]
    first_error: FirstError | None
    connections: Connections
    unanswered: NotRequired[Unanswered | None]
    client: Client
    server: Server | None
    host: Mapping[str, Cpu] | None
    late: Late | None
    client_late: bool
    throttled: NotRequired[Throttled]
