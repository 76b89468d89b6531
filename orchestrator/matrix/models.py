"""What matrix.yaml may say, as frozen models; docs/matrix.md describes every field.

These models mirror the file. What a server entry and one of its variants say together is a
`resolved.Variant`: the later stages read only that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from orchestrator.figures import FigureName
from orchestrator.matrix.axes import AXES, AxisName, chosen_fields, combined_fields
from orchestrator.matrix.command import without_null_byte
from orchestrator.matrix.fields import with_fields
from orchestrator.matrix.probe_settings import known_probe, list_probes
from orchestrator.matrix.values import (
    PATH,
    Command,
    Distribution,
    Install,
    Many,
    Name,
    PositiveInt,
    Seconds,
    System,
    Variable,
)

Protocol = Literal["wsgi", "asgi", "rsgi"]
Feature = Literal["workers", "threads", "tls", "websockets"]
Probe = Annotated[str, AfterValidator(known_probe), Field(json_schema_extra=list_probes)]
StopSignal = Literal["SIGTERM", "SIGINT", "SIGQUIT", "SIGWINCH"]
Disturbance = Literal["rolling", "late", "reload", "kill", "stall"]
Case = Literal["term", "int", "twice", "group", "long", "stream"]


class Model(BaseModel):
    """Frozen, strict about types, and closed: an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Flavour(Model):
    """A base image family."""

    base: str = Field(description="reference of the official image; {python} is replaced")
    libc: Literal["glibc", "musl"]
    dockerfile: str = Field(
        default="", description="folder under images/; by default server, or server-multistage where build_base is set"
    )
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


@with_fields(combined_fields())
class Axes(Model):
    """The values that a suite combines. A server is named `uvicorn`, `uvicorn/standard`, by a pattern or as `all`."""

    if TYPE_CHECKING:
        server: tuple[str, ...] = ()
        flavour: tuple[str, ...] = ()
        python: tuple[str, ...] = ()
        app: tuple[str, ...] = ()
        tls: tuple[bool, ...] = ()
        connections: tuple[int, ...] = ()
        open: tuple[int, ...] = ()


@with_fields(
    {
        **chosen_fields(axis for axis in AXES if axis.settable and axis.excluded),
        "why": (str, Field(min_length=1, description="the reason, which `matrix list` prints; it must be given")),
    }
)
class Filter(Model):
    """Which cells an `exclude` drops: those that match every given field."""

    if TYPE_CHECKING:
        server: str | None
        why: str


@with_fields(chosen_fields(axis for axis in AXES if axis.settable and axis.referred))
class Against(Model):
    """Axes with a value: each cell is compared with the one that has these values and agrees in all else."""


def given(chosen: Filter | Against) -> dict[str, object]:
    """The axes that have a value there, in the order of the table."""
    values = {axis.name: getattr(chosen, axis.name, None) for axis in AXES}
    return {name: value for name, value in values.items() if value is not None}


class View(Model):
    """The table that a suite is read in: one row per server and setting, one column per value of `across`."""

    across: AxisName | Literal["none"] = "connections"
    show: Many[FigureName] = Field(default=("rps", "ratio"), description="figures of each place of the table")


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
    apart: tuple[AxisName, ...] = Field(default=(), description="axes in which cells that are compared never differ")
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
