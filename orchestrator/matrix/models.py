"""What matrix.yaml may say, as frozen models; docs/matrix.md describes every field.

These models mirror the file. What a server entry and one of its variants say together is a
`resolved.Variant`: the later stages read only that.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
)

from orchestrator.matrix.command import one_line, without_null_byte
from orchestrator.matrix.requirement import distribution_name, each_once, pinned

NAME, PYTHON, PATH = r"^[a-z0-9][a-z0-9-]*$", r"^3\.[0-9]+t?$", r"^/"
VARIABLE, SYSTEM = r"^[A-Za-z_][A-Za-z0-9_]*$", r"^[a-z0-9][a-z0-9.+:=~_-]*$"
Name = Annotated[str, StringConstraints(pattern=NAME)]
Protocol = Literal["wsgi", "asgi", "rsgi"]
Mode = Literal["wheel", "sdist"]
Feature = Literal["workers", "threads", "tls", "websockets"]
Axis = Literal[
    "flavour", "mode", "python", "app", "workload", "workers", "threads", "tls", "twin", "open", "connections"
]
Figure = Literal[
    "rps", "ratio", "p50", "p99", "cpu", "cpu-ratio", "memory", "memory-idle", "between", "within", "ceiling", "errors"
]
Probe = Literal["load", "install", "startup", "shutdown", "deploy"]
StopSignal = Literal["SIGTERM", "SIGINT", "SIGQUIT", "SIGWINCH"]
Disturbance = Literal["rolling", "late", "reload", "kill", "stall"]
Case = Literal["term", "int", "twice", "group", "long", "stream"]
PositiveInt = Annotated[int, Field(gt=0, le=65536)]
Threads = Annotated[int, Field(ge=0, le=65536)]
Percent = Annotated[int, Field(ge=0, le=200)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Variable = Annotated[str, StringConstraints(pattern=VARIABLE)]
System = Annotated[str, StringConstraints(pattern=SYSTEM)]
Python = Annotated[str, StringConstraints(pattern=PYTHON)]

NUMBER, WORD = UNION_TAGS = "[number]", "[word]"
"""What pydantic adds to the path of a field that takes a number or a word."""

Workers = Annotated[
    Annotated[PositiveInt, Tag(NUMBER)] | Annotated[Literal["cpus"], Tag(WORD)],
    Discriminator(lambda value: WORD if isinstance(value, str) else NUMBER),
]
"""cpus: as many as there are CPUs for the server."""

Distribution = Annotated[str, AfterValidator(distribution_name)]
"""Written as on the index, kept as packages are compared: `mod_wsgi` becomes `mod-wsgi`."""

Install = Annotated[tuple[Annotated[str, AfterValidator(pinned)], ...], AfterValidator(each_once)]

Command = Annotated[str, AfterValidator(one_line)]
"""A launch command or a part of one, in one line whatever lines it was written in."""

T = TypeVar("T")


def _several(value: object) -> object:
    return tuple(value) if isinstance(value, list) else (value,)


Many = Annotated[tuple[T, ...], BeforeValidator(_several, json_schema_input_type=Any), Field(min_length=1)]
"""One value or a list of them: `flavour: slim` and `flavour: [slim, alpine]` both read well."""


class Model(BaseModel):
    """Frozen, strict about types, and closed: an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Flavour(Model):
    """A base image family."""

    base: str = Field(description="reference of the official image; {python} is replaced")
    libc: Literal["glibc", "musl"]
    dockerfile: str = Field(default="", description="folder under images/; the flavour's own name by default")
    standin: str = Field(default="", description="stand-in of images/bases used where `base` cannot be pulled")
    build_base: str = Field(default="", description="slim-multistage: reference of the image that servers are built on")
    build_standin: str = Field(default="", description="stand-in of `build_base`")


class App(Model):
    """An application under test: a module of images/apps with a module-level `app`."""

    protocol: Protocol
    module: str


class Workload(Model):
    """One request and the one right answer to it."""

    method: Literal["GET", "POST"] = "GET"
    path: str = Field(pattern=PATH)
    body: str = ""
    expect_body: str | None = Field(default=None, description="the whole body, or null to learn it at the check")
    expect_bytes: PositiveInt | None = Field(default=None, description="length of the body")


class SystemPackages(Model):
    """Packages of the distribution: for the build stage, and for the final image."""

    build: tuple[System, ...] = ()
    run: tuple[System, ...] = ()


class Declares(Model):
    """The configuration that an entry claims. Each given field is compared with what /fingerprint reports."""

    server: Distribution | None = Field(default=None, description="what owns the socket; by default the `package`")
    loop: str | None = Field(default=None, description="class of the event loop, e.g. uvloop.Loop")
    parser: str | None = Field(default=None, description="HTTP parser, e.g. httptools")
    worker_class: str | None = None
    keepalive: bool = Field(default=True, description="false where a server closes after each answer by design")
    access_log: bool = Field(
        default=False, description="true where a server logs each request and cannot be told not to"
    )


class Shutdown(Model):
    """What changes how a server ends: cells with `tuned: true` are started and stopped so."""

    options: Command = Field(default="", description="text added to {options}; {grace} is a grace period in seconds")
    signal: StopSignal = Field(default="SIGTERM", description="what to stop it with: STOPSIGNAL of a Dockerfile")


class Entry(Model):
    """The fields that a server and its variants share; a variant's value is added to or replaces the server's."""

    protocol: Protocol | None = None
    install: Install = Field(default=(), description="pinned requirements; a variant's replace the server's")
    package: Distribution = Field(
        default="", description="the one of `install` that owns the socket: that of the entry's name, else the first"
    )
    sdist_only: bool = Field(default=False, description="no wheel that pip accepts exists: cells say `sdist`")
    compiled: tuple[Distribution, ...] = Field(
        default=(), description="distributions with native code: the mode acts on them"
    )
    run: Command = Field(default="", description="launch command with placeholders")
    options: Command = Field(default="", description="text for {options}; a variant's follows the server's")
    tls: Command = Field(default="", description="text added to {options} where TLS is on")
    env: dict[Variable, Annotated[str, AfterValidator(without_null_byte)]] = Field(default_factory=dict)
    supports: tuple[Feature, ...] = Field(default=(), description="a variant's are added to the server's")
    system: dict[str, SystemPackages] = Field(default_factory=dict, description="by flavour")
    reload: Literal["", "SIGHUP", "SIGUSR1", "SIGUSR2"] = Field(default="", description="signal to reload on, if any")
    timeout: Command = Field(default="", description="text added to {options} to end a worker after {timeout} s")
    shutdown: Shutdown | None = Field(default=None, description="how to stop it without losing requests, if known")
    note: str = Field(default="", description="what a reader must know; printed with the results")


class VariantEntry(Entry):
    """One configuration of a server."""

    declares: Declares = Declares()
    extra: bool = Field(default=False, description="measured where a suite names it in full; `all` leaves it out")
    lacks: tuple[Feature, ...] = Field(default=(), description="features of the server that this variant has not")


class ServerEntry(Entry):
    """A program that owns the socket, with its variants."""

    variants: dict[Name, VariantEntry] = Field(min_length=1)


class Axes(Model):
    """The values that a suite combines. A server is named `uvicorn`, `uvicorn/standard`, by a pattern or as `all`."""

    server: Many[str] = ("all",)
    flavour: Many[str] = ("slim",)
    mode: Many[Literal["default", "wheel", "sdist"]] = Field(
        default=("default",), description="default: wheel, or sdist where nothing else exists"
    )
    python: Many[Python] = ("3.13",)
    app: Many[str] = ("all",)
    workload: Many[str] = ("item",)
    workers: Many[Workers] = Field(default=(1,), description="cpus: one for each CPU that servers get")
    threads: Many[Threads] = (4,)
    tls: Many[bool] = (False,)
    tuned: Many[bool] = Field(default=(False,), description="true: with the entry's `shutdown`")
    twin: Many[bool] = Field(default=(False,), description="true: the same server once more, under another name")
    open: Many[Percent] = Field(
        default=(0,), description="0: closed loop; else open loop at so many percent of the closed loop's throughput"
    )
    connections: Many[PositiveInt] = (32,)


class Filter(Model):
    """Which cells an `exclude` drops: those that match every given field."""

    server: str | None = None
    flavour: str | None = None
    mode: Mode | None = None
    python: Python | None = None
    app: str | None = None
    workload: str | None = None
    workers: PositiveInt | None = None
    threads: Threads | None = None
    tls: bool | None = None
    tuned: bool | None = None
    twin: bool | None = None
    open: Percent | None = None
    connections: PositiveInt | None = None
    why: str = Field(min_length=1, description="printed by `matrix list`")


class Against(Model):
    """Axes with a value: each cell is compared with the one that has these values and agrees in all else."""

    flavour: str | None = None
    mode: Mode | None = None
    python: Python | None = None
    workload: str | None = None
    workers: PositiveInt | None = None
    threads: Threads | None = None
    tls: bool | None = None
    twin: bool | None = None

    def axes(self) -> dict[str, object]:
        """Those that are given."""
        return self.model_dump(exclude_none=True)


class View(Model):
    """The table that a suite is read in: one row per server and setting, one column per value of `across`."""

    across: Axis | Literal["none"] = "connections"
    show: Many[Figure] = Field(default=("rps", "ratio"), description="figures of each place of the table")


class Schedule(Model):
    """How long and how often a suite measures."""

    rounds: PositiveInt = Field(default=3, description="fresh starts of each server")
    precision: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.0, description="go on after `rounds` until every ratio is known to so much (0.03: 3 %); 0: do not"
    )
    max_rounds: PositiveInt = Field(default=30, description="rounds at the most where `precision` is asked for")
    cases: Many[Case] = Field(default=("term",), description="of the shutdown probe: what happens to a server")
    disturb: Many[Disturbance] = Field(default=("rolling",), description="of the deploy probe: what is done under load")
    kill_after_s: Seconds = Field(default=10, description="of the shutdown probe: seconds from the signal to SIGKILL")
    slices: PositiveInt = Field(default=3, description="timed stretches per cell and round")
    slice_s: Seconds = Field(default=1.0, description="seconds of a timed stretch")
    warmup_s: Annotated[float, Field(ge=0, le=3600)] = Field(default=0.3, description="seconds before each slice")
    first_warmup_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=1.0, description="seconds before a server's first slice of a round"
    )


class Suite(Model):
    """A named set of cells, and the probe that each gets."""

    about: str = Field(default="", description="one line for `matrix list`")
    probe: Probe = "load"
    baseline: str = Field(default="", description="server/variant that ratios refer to; or `against`")
    against: Against | None = Field(default=None, description="ratios refer to the same server with these values")
    apart: tuple[Axis, ...] = Field(default=(), description="axes in which cells that are compared never differ")
    view: View = View()
    axes: Axes = Axes()
    include: tuple[Axes, ...] = ()
    exclude: tuple[Filter, ...] = ()
    schedule: Schedule = Schedule()


class Cpus(Model):
    """CPUs for the server and for the load generator: `auto`, or a list such as `0,2-3`."""

    server: str = "auto"
    client: str = "auto"


class Matrix(Model):
    """The whole of matrix.yaml."""

    version: Literal[1]
    cpus: Cpus = Cpus()
    flavours: dict[Name, Flavour] = Field(min_length=1)
    apps: dict[Name, App] = Field(min_length=1)
    workloads: dict[Name, Workload] = Field(min_length=1)
    servers: dict[Name, ServerEntry] = Field(min_length=1)
    suites: dict[Name, Suite] = Field(min_length=1)
