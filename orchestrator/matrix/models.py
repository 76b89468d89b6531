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

    base: str = Field(description="reference of the official base image; `{python}` stands for the version")
    libc: Literal["glibc", "musl"] = Field(description="`glibc` or `musl`")
    dockerfile: str = Field(
        default="",
        description="folder under images/ with its Dockerfile; `server` by default, `server-multistage` with a "
        "`build_base`",
    )
    standin: str = Field(
        default="",
        description="stand-in of images/bases that is made where `base` cannot be pulled: `slim`, `debian` or `musl`; "
        "none by default",
    )
    build_base: str = Field(
        default="",
        description="of a multi-stage flavour: reference of the image that servers are built in, before they move to "
        "`base`",
    )
    build_standin: str = Field(default="", description="stand-in of `build_base`")


class App(Model):
    """An application under test: a module of images/apps with a module-level `app`."""

    protocol: Protocol = Field(description="`wsgi`, `asgi` or `rsgi`: a variant gets the apps that speak its protocol")
    module: str = Field(description="module in images/apps; the application is its `app`")


class Workload(Model):
    """One request and the one right answer to it."""

    method: Literal["GET", "POST"] = Field(default="GET", description="`GET` (the default) or `POST`")
    path: str = Field(
        pattern=PATH,
        description="path and query, from `/` on; sent percent-encoded where it holds other than a URL may "
        "([docs/loadgen.md](loadgen.md#what-is-sent))",
    )
    body: str = Field(default="", description="body of the request")
    expect_body: str | None = Field(
        default=None,
        description="the whole body of the right answer; without it, it is learnt at the check before any timing",
    )
    expect_bytes: PositiveInt | None = Field(default=None, description="length of the body of the right answer")


class SystemPackages(Model):
    """Packages of the distribution: for the build stage, and for the final image."""

    build: tuple[System, ...] = Field(default=(), description="packages that the build needs")
    run: tuple[System, ...] = Field(
        default=(), description="packages that the server needs when it runs (there at the build, too)"
    )


class Declares(Model):
    """The configuration that an entry claims. Each given field is compared with what /fingerprint reports."""

    server: Distribution | None = Field(
        default=None,
        description="what owns the socket, as /fingerprint names it; by default the entry's `package`. Names compare "
        "as packages do",
    )
    loop: str | None = Field(default=None, description="class of the event loop, such as `uvloop.Loop`")
    parser: str | None = Field(default=None, description="HTTP parser, such as `httptools`")
    worker_class: str | None = Field(
        default=None, description="class of the worker, such as `gunicorn.workers.gthread.ThreadWorker`"
    )
    keepalive: bool = Field(
        default=True, description="`false` where a server closes each connection after the answer, by design"
    )
    access_log: bool = Field(
        default=False, description="`true` where a server logs each request and has no flag against it"
    )


class Shutdown(Model):
    """What changes how a server ends: cells with `tuned: true` are started and stopped so."""

    options: Command = Field(
        default="", description="text that is added to `{options}`; `{grace}` in it is a grace period in seconds"
    )
    signal: StopSignal = Field(
        default="SIGTERM",
        description="what to stop it with: `SIGTERM` (the default), `SIGINT`, `SIGQUIT` or `SIGWINCH`",
    )


class Entry(Model):
    """The fields that a server and its variants share; a variant's value is added to or replaces the server's."""

    protocol: Protocol | None = Field(default=None, description="`wsgi`, `asgi` or `rsgi`")
    install: Install = Field(
        default=(), description="what pip installs, each pinned to one version: [Requirements](#requirements)"
    )
    package: Distribution = Field(
        default="",
        description="the distribution of `install` that owns the socket; by default the one of the entry's name, else "
        "the first",
    )
    sdist_only: bool = Field(
        default=False,
        description="`true` where no wheel that pip accepts exists: cells of the install mode `default` are then "
        "`sdist`",
    )
    compiled: tuple[Distribution, ...] = Field(
        default=(),
        description="distributions with native code: install mode `wheel` forbids building them, `sdist` forces it",
    )
    run: Command = Field(default="", description="the launch command, see [Placeholders](#placeholders)")
    options: Command = Field(default="", description="text for `{options}`: what makes the variant")
    tls: Command = Field(default="", description="text that is added to `{options}` in cells with TLS")
    env: dict[Variable, Annotated[str, AfterValidator(without_null_byte)]] = Field(
        default_factory=dict, description="environment variables of the server, by name, texts"
    )
    supports: tuple[Feature, ...] = Field(
        default=(),
        description="what can be set: `workers`, `threads`, `tls`, `websockets`. A suite's axis applies only to "
        "servers that support it",
    )
    system: dict[str, SystemPackages] = Field(
        default_factory=dict, description="packages of the distribution by flavour"
    )
    reload: Literal["", "SIGHUP", "SIGUSR1", "SIGUSR2"] = Field(
        default="", description="the signal on which it reloads, where it has one: `SIGHUP`, `SIGUSR1` or `SIGUSR2`"
    )
    timeout: Command = Field(
        default="",
        description="text that is added to `{options}` to end a worker that takes longer than `{timeout}` seconds for "
        "a request",
    )
    shutdown: Shutdown | None = Field(
        default=None, description="how to stop it without losing requests, where that is known"
    )
    note: str = Field(default="", description="what a reader of the results must know")


class VariantEntry(Entry):
    """One configuration of a server."""

    declares: Declares = Field(default=Declares(), description="the configuration that it claims to be")
    extra: bool = Field(
        default=False,
        description="`true` for a configuration of special interest: `all` and its server's bare name leave it out, "
        "`uvicorn/rloop` or `uvicorn/*` in a suite takes it",
    )
    lacks: tuple[Feature, ...] = Field(default=(), description="what the server supports and this variant does not")


class ServerEntry(Entry):
    """A program that owns the socket, with its variants."""

    variants: dict[Name, VariantEntry] = Field(
        min_length=1,
        description="of a server only: its configurations by name: [VariantEntry](#variantentry). One at least",
    )


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

    across: AxisName | Literal["none"] = Field(
        default="connections",
        description="the axis whose values are the columns; it needs two or more. `none`: one flat table",
    )
    show: Many[FigureName] = Field(
        default=("rps", "ratio"),
        description="figures of each place of the table, the first one drawn: those [below](#figures)",
    )


class Schedule(Model):
    """How long and how often a suite measures."""

    rounds: PositiveInt = Field(default=3, description="fresh starts of each server; a single one gives no interval")
    precision: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.0,
        description="go on after `rounds` until every ratio is known to so much: 0.03 for ± 3 % (half of its 95 % "
        "interval, over the ratio). 0: `rounds` and no more",
    )
    max_rounds: PositiveInt = Field(default=30, description="where `precision` is asked for: the most rounds")
    extra_rounds: Annotated[int, Field(ge=0, le=100)] = Field(
        default=2,
        description="without `precision`: so many rounds are added at the most where three or more lie so far apart "
        "that half of an interval is over half of its figure",
    )
    cases: Many[Case] = Field(
        default=("term",),
        description="of the probe `shutdown`: what happens to a server: `term`, `int`, `twice`, `group`, `long`, "
        "`stream`; see [shutdown.md](shutdown.md)",
    )
    disturb: Many[Disturbance] = Field(
        default=("rolling",),
        description="of the probe `deploy`: what is done under load: `rolling`, `late`, `reload`, `kill`, `stall`",
    )
    kill_after_s: Seconds = Field(default=10, description="of the probe `shutdown`: seconds from the signal to SIGKILL")
    slices: PositiveInt = Field(
        default=3,
        description="timed stretches of a cell in each round, interleaved with those of the others. Many short ones "
        "make ratios more certain than few long ones, where a slice still counts some hundred answers",
    )
    slice_s: Seconds = Field(default=1.0, description="seconds of a timed stretch")
    warmup_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=0.3,
        description="seconds of load before each stretch, not counted; of a closed loop the least: it goes on until "
        "every connection has had an answer, up to five times as long, but no more than 2 s longer "
        "([loadgen.md](loadgen.md))",
    )
    first_warmup_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=1.0, description="seconds of load before a server's first stretch of a round"
    )


class Suite(Model):
    """A named set of cells, and the probe that each gets."""

    about: str = Field(default="", description="one line for `matrix list`")
    probe: Probe = Field(
        default="load",
        description="what is done to each cell; see [the schema](matrix.schema.json) for those that exist",
    )
    baseline: str = Field(
        default="",
        description="`server/variant` that ratios refer to; the suite must measure it. The load probe needs it, or "
        "`against`",
    )
    against: Against | None = Field(
        default=None,
        description="in the place of `baseline`: ratios refer to the same server with other values of some axes",
    )
    apart: tuple[AxisName, ...] = Field(
        default=(),
        description="axes in which cells that are compared never differ: `[flavour]` gives each flavour a baseline, "
        "and an order, of its own",
    )
    view: View = Field(default=View(), description="the table that the suite is read in")
    axes: Axes = Field(default=Axes(), description="the values that are combined")
    include: tuple[Axes, ...] = Field(default=(), description="more cells, each item with [Axes](#axes) of its own")
    exclude: tuple[Filter, ...] = Field(default=(), description="cells that are dropped, each item a [Filter](#filter)")
    schedule: Schedule = Field(default=Schedule(), description="how long and how often is measured")


class Cpus(Model):
    """CPUs for the server and for the load generator: `auto`, or a list such as `0,2-3`."""

    server: str = Field(default="auto", description="CPUs of the server")
    client: str = Field(default="auto", description="CPUs of the load generator")


class Matrix(Model):
    """The whole of matrix.yaml."""

    version: Literal[1] = Field(description="version of this format: 1")
    cpus: Cpus = Field(default=Cpus(), description="which CPUs the server and the load generator get")
    flavours: dict[Name, Flavour] = Field(min_length=1, description="base image families by name")
    apps: dict[Name, App] = Field(min_length=1, description="applications under test by name")
    workloads: dict[Name, Workload] = Field(
        min_length=1,
        description="requests by name: [Workload](#workload). `item` must be there: the check before any timing asks "
        "for it",
    )
    servers: dict[Name, ServerEntry] = Field(min_length=1, description="the catalogue by name")
    suites: dict[Name, Suite] = Field(min_length=1, description="named sets of cells")
