"""Everything that passes between the load generator and what drives it, as types: the one place where its form is said.

Both sides import this module, which imports nothing of theirs. From it come the encoding (JSON), the decoding with its
errors, and the published JSON Schemas. Units stand in the names: `_s` seconds, `_us` microseconds, `_ns` nanoseconds.

What may be unknown is None in its type. What was added after records had been written has a default, so that these can
still be decoded; what a later version adds to an answer is passed over, while a field that a question does not have is
a mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

VERSION = "loadgen/1"

LOWEST_US, HIGHEST_US, DIGITS = 1, 60_000_000, 3
"""The range and the significant figures of every latency histogram."""

ErrorKind = Literal["refused", "reset", "closed_early", "timeout", "status", "wrong_body", "protocol"]
ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)

SignalName = Literal["SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGKILL"]
SIGNALS: tuple[SignalName, ...] = get_args(SignalName)

Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]
Moment = Annotated[int, Meta(ge=0, description="ns of CLOCK_MONOTONIC")]
Pid = Annotated[int, Meta(ge=1)]
Cpu = Annotated[int, Meta(ge=0, le=65_535)]
Timeout = Annotated[float, Meta(ge=0.001, le=HIGHEST_US / 1e6)]
Header = tuple[str, str]


# --- What is asked for: a request, and one slice of load -------------------------------------------------------------


class Expect(Struct, frozen=True, forbid_unknown_fields=True):
    """What a right answer is. `body` None: any body."""

    status: Annotated[int, Meta(ge=100, le=599)] = 200
    body: bytes | None = None


class Tls(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`ca`: PEM file to verify against (None: the system's); `server_name`: for SNI and verification."""

    ca: Annotated[str, Meta(pattern=r"^[^\r\n\0]*$")] | None = None
    verify: bool = True
    server_name: str | None = None


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request; `tls` says how to verify an https URL."""

    url: str
    method: str = "GET"
    headers: tuple[Header, ...] = ()
    body: bytes = b""
    timeout_s: Timeout = 10.0
    tls: Tls = Tls()


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """A request and its right answer."""

    request: Request
    expect: Expect = Expect()


class Path(Struct, frozen=True, forbid_unknown_fields=True):
    """One of several targets asked in turn, e.g. `/items/1?q=2`; `expect` None: the spec's own."""

    path: str
    expect: Expect | None = None


class LoadSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One slice. `paths`: asked in turn; none: the URL's own. `watch_pid`: root of the server's process tree."""

    url: str
    method: str = "GET"
    headers: tuple[Header, ...] = ()
    body: bytes = b""
    paths: tuple[Path, ...] = ()
    connections: Annotated[int, Meta(ge=1, le=100_000)] = 1
    duration_s: Annotated[float, Meta(ge=0.01, le=86_400)] = 1.0
    warmup_s: Annotated[float, Meta(ge=0, le=3_600)] = 0.0
    loop: Literal["closed", "open"] = "closed"
    rate: (
        Annotated[float, Meta(ge=0.001, le=10_000_000, description="requests per second; of an open loop only")] | None
    ) = None
    arrivals: Literal["constant", "poisson"] = "constant"
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    expect: Expect = Expect()
    timeout_s: Timeout = 10.0
    tls: Tls = Tls()
    processes: Annotated[int, Meta(ge=1, le=1_024)] = 1
    cpus: tuple[Cpu, ...] = ()
    engine: Literal["builtin", "wrk", "h2load"] = "builtin"
    watch_pid: Pid | None = None


# --- What came of a slice --------------------------------------------------------------------------------------------


class Latency(Struct, frozen=True, kw_only=True):
    """Times in µs. `count`, `min`, `mean`, `max` are exact; None without a right answer."""

    unit: Literal["us"] = "us"
    histogram: Annotated[
        str, Meta(description="HDR histogram V2, compressed, base64; 1 us to 60 s, 3 significant figures")
    ]
    count: Count
    min: Amount | None
    mean: Amount | None
    max: Amount | None
    percentiles: Annotated[
        dict[Annotated[str, Meta(pattern="^[0-9.]+$")], Amount],
        Meta(description="only those beyond which at least ten samples lie"),
    ]


class FirstError(Struct, frozen=True):
    """The first request that got no right answer."""

    kind: ErrorKind
    detail: str


class Connections(Struct, frozen=True, kw_only=True):
    """`opened` since the slice began, `reconnects` inside the stretch, `per_request` of these for each right answer."""

    opened: Count
    reconnects: Count
    per_request: Amount | None
    resent: Count


class Unanswered(Struct, frozen=True, kw_only=True):
    """What no answer and no error tells of."""

    connections: Annotated[
        int, Meta(ge=0, description="asked before the stretch began, and without an answer until it ended")
    ]
    oldest_us: (
        Annotated[float, Meta(ge=0, description="age at the stretch's end of the request that was open for longest")]
        | None
    )


class TlsUse(Struct, frozen=True, kw_only=True):
    """Handshakes completed in the stretch, and those of them that resumed a session."""

    handshakes: Count
    resumed: Count


class Traffic(Struct, frozen=True, kw_only=True):
    """Bytes. `received` None: not told."""

    sent: Count
    received: Count | None


class KernelLimits(Struct, frozen=True, kw_only=True):
    """Of a control group and those above it, as the kernel says. None: no limit; left out: it could not be read."""

    memory_bytes: Count | UnsetType | None = UNSET
    swap_bytes: Count | UnsetType | None = UNSET
    pids: Count | UnsetType | None = UNSET


CpuSet = Annotated[
    tuple[Cpu, ...], Meta(min_length=1, description="those on which any thread may run, as the kernel says")
]


class ClientUse(Struct, frozen=True, kw_only=True):
    """CPU of the load generator; `share`: over wall time and processes."""

    user_s: Amount
    system_s: Amount
    share: Amount
    involuntary_switches: Count
    cpus: CpuSet | None = None
    limits: KernelLimits = KernelLimits()


class KernelCounts(Struct, frozen=True, kw_only=True):
    """What the network namespace counted."""

    passive_opens: Count
    retransmits: Count


class Late(Struct, frozen=True, kw_only=True):
    """Of an open loop: requests that the load generator itself sent too late, by over `bound_us`."""

    bound_us: Amount
    max_us: Amount
    requests: Count


class ServerUse(Struct, frozen=True, kw_only=True):
    """The server's whole process tree. Context switches are less than 0 where threads ended meanwhile."""

    cpu_s: Amount
    user_s: Amount
    system_s: Amount
    rss_bytes: Count
    pss_bytes: Count | None
    peak_rss_bytes: Count
    processes: Count
    born: Annotated[int, Meta(ge=0, description="processes that were not there at the beginning")] | None = None
    ended: Count
    ended_s: (
        Annotated[
            float, Meta(ge=0, description="CPU in the stretch of processes that ended in it, in ticks; part of cpu_s")
        ]
        | None
    ) = None
    unwaiting: (
        Annotated[
            int, Meta(ge=0, description="processes that ignore SIGCHLD: the CPU of children that end is not known")
        ]
        | None
    ) = None
    threads: Count
    voluntary_switches: int
    involuntary_switches: int
    cpus: CpuSet | None = None
    limits: KernelLimits = KernelLimits()


class CpuShares(Struct, frozen=True, kw_only=True):
    """Shares of one CPU's time."""

    busy: Amount
    steal: Amount


class Quota(Struct, frozen=True, kw_only=True):
    """What a CPU quota held back."""

    periods: Annotated[int, Meta(ge=0, description="in which a CPU quota was used up")]
    seconds: Annotated[float, Meta(ge=0, description="for which it stopped, added up over CPUs")]


class Throttled(Struct, frozen=True, kw_only=True):
    """What held CPUs back; None where the counter may not be read."""

    client: Quota | None
    server: Quota | None
    heat: (
        Annotated[
            dict[str, Count],
            Meta(description="by CPU: how often it or its package slowed down for being too hot"),
        ]
        | None
    )


class LoadResult(Struct, frozen=True, kw_only=True):
    """One slice. `requests`: right answers; `rps`: those inside the stretch, by the second; `host`: by CPU (`cpu0`).

    `late`, `service` are of an open loop, `tls` of an https URL.
    """

    schema: Literal["loadgen/1"] = "loadgen/1"
    spec: LoadSpec | None = None
    warmup_s: (
        Annotated[float, Meta(ge=0, description="from the slice's beginning to the stretch: at least spec.warmup_s")]
        | None
    ) = None
    elapsed_s: Amount
    requests: Count
    rps: Amount
    latency: Latency
    service: Latency | None
    errors: dict[ErrorKind, Count]
    first_error: FirstError | None
    connections: Connections
    unanswered: Unanswered | None = None
    tls: TlsUse | None
    bytes: Traffic
    client: ClientUse
    per_100ms: tuple[Count, ...]
    kernel: KernelCounts | None
    late: Late | None
    client_late: bool
    server: ServerUse | None
    host: dict[str, CpuShares] | None
    throttled: Throttled | None = None

    @property
    def wrong(self) -> int:
        """Requests without a right answer."""
        return sum(self.errors.values())

    @property
    def due(self) -> int:
        """Requests that were due in an open loop's stretch: each got its right answer, however late, or its error."""
        return self.requests + self.wrong

    @property
    def in_time(self) -> int:
        """Those of them with a right answer before the stretch's end."""
        return int(self.rps * self.elapsed_s + 0.5)


# --- The agent's answers ---------------------------------------------------------------------------------------------


class Mistake(Struct, frozen=True):
    """Why the agent could not do what it was asked."""

    kind: str
    message: str


class Failed(Struct, frozen=True, kw_only=True):
    """The answer to a call that could not be done."""

    ok: bool = False
    error: Mistake


class Machine(Struct, frozen=True, kw_only=True):
    """The machine as seen from where the generator runs. What could not be found out is None."""

    kernel: str | None = None
    system: str | None = None
    machine: str | None = None
    cpu_model: str | None = None
    cpus_online: int | None = None
    affinity: tuple[Cpu, ...] | None = None
    smt_siblings: tuple[str, ...] | None = None
    governor: str | None = None
    memory_bytes: int | None = None
    memory_available_bytes: int | None = None
    libc: str | None = None
    python: str | None = None
    implementation: str | None = None
    gil: bool | None = None
    cgroup_cpus: float | None = None
    limits: KernelLimits = KernelLimits()
    load_average: tuple[float, ...] | None = None
    hypervisor: bool | None = None
    clocksource: str | None = None


class Greeting(Struct, frozen=True, kw_only=True):
    """Of `hello`."""

    ok: bool = True
    schema: str
    version: str
    facts: Machine


class Problem(Struct, frozen=True):
    """Why a request has no answer."""

    kind: ErrorKind
    detail: str


class Answered(Struct, frozen=True, kw_only=True):
    """A server's answer, or the error in its place. `connection_reused`: it came over the connection of the last."""

    status: int | None = None
    reason: str | None = None
    http_version: str | None = None
    headers: tuple[Header, ...] = ()
    body: bytes = b""
    connection_reused: bool = False
    error: Problem | None = None


class Fetched(Struct, frozen=True, kw_only=True):
    """Of `fetch`: an answer for each request."""

    ok: bool = True
    answers: Annotated[tuple[Answered, ...], Meta(min_length=1)]


class Waited(Struct, frozen=True, kw_only=True):
    """Of `wait`. `ok`: the right answer came; else `answer` or `error` is the last thing that did.

    Times count from the call: `connect_s` to the first connection that was accepted, `seconds` to the end of it all.
    """

    ok: bool
    attempts: Count
    connect_s: Amount | None
    seconds: Amount
    answer: Answered | None = None
    error: Problem | None = None


class Loaded(Struct, frozen=True, kw_only=True):
    """Of `load`."""

    ok: bool = True
    result: LoadResult


class Sample(ServerUse, frozen=True, kw_only=True):
    """CPU and memory of a process tree up to now. `wanting`: threads that run, or wait for a CPU or a disk."""

    wanting: Count


class Sampled(Struct, frozen=True, kw_only=True):
    """Of `sample`."""

    ok: bool = True
    sample: Sample


class Clocks(Struct, frozen=True, kw_only=True):
    """Of `clock`: CLOCK_MONOTONIC and the time of day, read together."""

    ok: bool = True
    monotonic_ns: int
    wall_ns: int

    def monotonic(self, wall_ns: int) -> int:
        """A time of day on the monotonic clock."""
        return wall_ns - self.wall_ns + self.monotonic_ns


class Signalled(Struct, frozen=True, kw_only=True):
    """Of `signal`: the moments before and after kill(2), and the processes that it reached."""

    ok: bool = True
    before_ns: Moment
    after_ns: Moment
    processes: Count


class Begun(Struct, frozen=True, kw_only=True):
    """Of `startup`: the first connection and the first answer, and the times of ten answers."""

    ok: bool = True
    accepted_ns: Moment
    answered_ns: Moment
    latencies_us: Annotated[tuple[Amount, ...], Meta(min_length=10)]


End = Literal["answered", "status", "wrong_body", "protocol", "cut", "closed", "reset", "refused", "open", "not_kept"]
"""How a connection ended: with an answer, right or not; `cut` before it was whole, `closed` where nothing
was asked; `open` until watching ended; `not_kept`: closed at once."""


class Fate(Struct, frozen=True):
    """What became of a connection. `kept`: after a whole answer, for more requests."""

    end: End
    end_ns: Moment
    sent_ns: Moment | None = None
    first_byte_ns: Moment | None = None
    bytes: Count = 0
    status: int | None = None
    kept: bool = False


class Fates(Struct, frozen=True, kw_only=True):
    """Of the five connections of `watch`."""

    slow: Fate
    queued: Fate
    idle: Fate
    kept: Fate
    new: Fate


class Watched(Struct, frozen=True, kw_only=True):
    """Of `watch`. `received_ns`: when the server had read the whole of `slow`, at most the signal; None: not told."""

    ok: bool = True
    received_ns: Moment | None
    connections: Fates


class Arrival(Struct, frozen=True, array_like=True):
    """A request of `steady`, an array in JSON. `kind` "": it had its right answer."""

    due_ns: Moment
    end_ns: Moment
    kind: ErrorKind | Literal[""]


class Accounted(Struct, frozen=True, kw_only=True):
    """Of `steady`: every request, in the order of when they were due."""

    ok: bool = True
    requests: tuple[Arrival, ...]


# --- The agent's calls -----------------------------------------------------------------------------------------------

A = TypeVar("A", bound=Struct)


class Call(Struct, Generic[A], frozen=True, kw_only=True, tag_field="op", forbid_unknown_fields=True):
    """A question to the agent; its type names that of the answer."""


class Hello(Call[Greeting], frozen=True, kw_only=True, tag="hello"):
    """Who is there, and on what machine?"""


class Wait(Call[Waited], frozen=True, kw_only=True, tag="wait"):
    """Ask until the right answer comes or `deadline_s` is over."""

    request: Request
    expect: Expect = Expect()
    deadline_s: Annotated[float, Meta(ge=0.001, le=3600)] = 10.0


class Fetch(Call[Fetched], frozen=True, kw_only=True, tag="fetch"):
    """Ask in turn, on one connection as far as the server keeps it (and `keep_alive` allows)."""

    requests: tuple[Request, ...]
    keep_alive: bool = True


class Load(Call[Loaded], frozen=True, kw_only=True, tag="load"):
    """Run a slice. `begin_ns` (time.perf_counter_ns): when to start the warm-up; None: now."""

    spec: LoadSpec
    begin_ns: Moment | None = None


class TakeSample(Call[Sampled], frozen=True, kw_only=True, tag="sample"):
    """Read the tree of a process."""

    pid: Pid


class Clock(Call[Clocks], frozen=True, kw_only=True, tag="clock"):
    """Read this kernel's clocks."""


class Signal(Call[Signalled], frozen=True, kw_only=True, tag="signal"):
    """Signal `pid`, or all of its process group, at `at_ns`."""

    pid: Pid
    name: SignalName
    at_ns: Moment
    group: bool = False


class Startup(Call[Begun], frozen=True, kw_only=True, tag="startup"):
    """Ask a server that is about to start until it answers right; then nine times more, and leave it for `idle_ns`."""

    quick: Question
    until_ns: Moment
    idle_ns: Count = 0


class Watch(Call[Watched], frozen=True, kw_only=True, tag="watch"):
    """Watch five connections of a server around a signal that is sent at `signal_ns`, at most until `until_ns`.

    `slow` is asked `lead_ns` before the signal, so that it is in flight. `fill` more connections then ask for the same,
    so that nothing is left that could serve; behind them one is `queued`: it asks for `quick` `queue_ns` before the
    signal. Two connections have been kept after an answer to `quick`: one stays idle, the other asks again `after_ns`
    after the signal, when a new one asks too.
    """

    slow: Question
    quick: Question
    fill: Annotated[int, Meta(ge=0, le=4095)] = 0
    signal_ns: Moment
    until_ns: Moment
    lead_ns: Count
    queue_ns: Count
    after_ns: Count


class Steady(Call[Accounted], frozen=True, kw_only=True, tag="steady"):
    """Ask `rate` times a second from `begin_ns` to `end_ns`: the first target, from `switch_ns` on the last one.

    At most `connections` are in flight; a request that finds none free waits, and its time counts from when it was due.
    """

    targets: Annotated[tuple[Question, ...], Meta(min_length=1, max_length=2)]
    rate: Annotated[float, Meta(ge=0.1, le=1000)]
    begin_ns: Moment
    end_ns: Moment
    switch_ns: Moment | None = None
    connections: Annotated[int, Meta(ge=1, le=256)] = 16


class Bye(Call[Failed], frozen=True, kw_only=True, tag="bye"):
    """End. It is not answered."""


AnyCall = Hello | Wait | Fetch | Load | TakeSample | Clock | Signal | Startup | Watch | Steady | Bye


def operation(call: Call[Any]) -> str:
    """The `op` of a call."""
    return str(type(call).__struct_config__.tag)


def answer_type(call: Call[A]) -> type[A]:
    """The type of the answer to a call, which its class names."""
    (base,) = type(call).__orig_bases__  # type: ignore[attr-defined]
    return get_args(base)[0]  # type: ignore[no-any-return]


def decode_answer(line: str | bytes, call: Call[A]) -> A | Failed:
    """What the agent answered to a call. Raises msgspec.DecodeError where it is neither its answer nor a failure."""
    kind = answer_type(call)
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.ValidationError as error:
        try:
            return msgspec.json.decode(line, type=Failed)
        except msgspec.ValidationError:
            raise error from None


# --- What `loadgen ceiling --json` prints ----------------------------------------------------------------------------


class CeilingCpus(Struct, frozen=True, kw_only=True):
    """The CPUs that both sides were pinned to; None where there are no two."""

    client: Cpu | None
    responder: Cpu | None


class ShapeCeiling(Struct, frozen=True, kw_only=True):
    """What the generator reached against the null responder under one shape of load; `rps`: median of `rps_slices`."""

    connections: Count
    body_bytes: Count
    tls: bool
    rps: Amount
    rps_slices: tuple[Amount, ...]
    client_share: Amount
    client_us_per_request: Amount
    client_user_us_per_request: Amount


class Ceilings(Struct, frozen=True, kw_only=True):
    """The ceiling of each shape, measured interleaved."""

    schema: Literal["loadgen-ceiling/1"] = "loadgen-ceiling/1"
    cpus: CeilingCpus
    duration_s: Amount
    shapes: tuple[ShapeCeiling, ...]


# --- JSON ------------------------------------------------------------------------------------------------------------


def encode(document: Struct | Sequence[Struct]) -> str:
    """A document as one line of JSON."""
    return msgspec.json.encode(document).decode()


def schemas() -> dict[str, dict[str, Any]]:
    """The published JSON Schemas by name."""
    kinds: dict[str, Any] = {"load-spec": LoadSpec, "load-result": LoadResult, "agent-calls": AnyCall}
    kinds["ceiling"] = Ceilings
    return {
        name: {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(kind)}
        for name, kind in kinds.items()
    }
