"""What a record and a run's own file hold: the published schema (docs/record.schema.json, docs/run.schema.json).

Units stand in the names: `_s` seconds, `_us` microseconds, `_bytes` bytes. A figure that could not be taken is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, create_model

from orchestrator.figures import Estimate, RatioBound, summary_fields
from orchestrator.matrix.axes import stored_fields
from orchestrator.matrix.fields import with_fields
from orchestrator.probes.deploy.record import DeploySection
from orchestrator.probes.install.record import InstallSection
from orchestrator.probes.registry import PROBES
from orchestrator.probes.shutdown.record import ShutdownSection
from orchestrator.probes.startup.record import StartupSection
from orchestrator.stored import Stored

Outcome = Literal["measured", "not_built", "not_installed", "not_started", "check_failed", "load_failed", "not_judged"]


@with_fields(stored_fields())
class CellPoint(Stored):
    """The axes of a cell: orchestrator/matrix/axes.py has the table."""

    if TYPE_CHECKING:
        server: str
        variant: str
        flavour: str
        mode: str
        python: str
        app: str
        protocol: str
        workload: str
        workers: int
        threads: int | None
        tls: bool
        connections: int
        tuned: bool
        open: int


class Reason(Stored):
    """Why there are no figures."""

    stage: str
    line: str
    detail: str = ""


class Judgement(Stored):
    """The code that derived figures and verdicts from what was measured, maybe long after it, and when."""

    commit: str
    digest: str = Field(description="of all files that measure and judge")
    at: str


class ImageFacts(Stored):
    """What the cell ran in."""

    reference: str
    digest: str
    architecture: str
    base: str
    base_digest: str
    standin: str = Field(description="'' for an official base; else the stand-in that was used in its place")
    base_note: str
    versions: dict[str, str] = Field(description="distributions that the server's install brought, by name")
    install: dict[str, Any] = Field(description="the whole report of the install step")


@with_fields(summary_fields())
class Summary(Stored):
    """The figures of a cell over all its slices: orchestrator/figures.py has the table."""

    if TYPE_CHECKING:
        slices: int
        requests: int
        errors: int
        rps: Estimate
        rate_asked: float | None
        rate_share: float | None
        ratio: Estimate | None
        ratio_bound: RatioBound
        ceiling_share: float | None
        between: float | None
        within: float | None
        latency_us: dict[str, float]
        latency_intervals_us: dict[str, Estimate]
        cpu_us_per_request: Estimate | None
        cpu_ratio: Estimate | None
        cpu_user_us_per_request: float | None
        cpu_system_us_per_request: float | None
        voluntary_switches_per_request: float | None
        involuntary_switches_per_request: float | None
        memory_bytes: int | None
        memory_pss_bytes: int | None
        memory_idle_bytes: int | None
        memory_idle_pss_bytes: int | None
        memory_peak_bytes: int | None
        memory_per_worker_bytes: int | None


class VerdictRecord(Stored):
    rule: str
    effect: Literal["void", "unranked", "bound", "mark"]
    text: str
    cure: str
    slices: int
    of: int


class SliceRecord(Stored):
    """One timed stretch; `load` is the load generator's document (loadgen/schema/result.json)."""

    order: int
    started: str
    orchestrator_s: float
    load: dict[str, Any]
    rate: float | None = Field(default=None, description="of an open loop: requests per second asked for")


class RoundRecord(Stored):
    number: int
    ready_s: float | None
    fingerprint: dict[str, Any] | None
    mismatches: list[dict[str, str]]
    unverified: list[str] = Field(default=[], description="declared fields that could not be found out")
    keepalive: bool | None
    access_log: bool | None
    failure: Reason | None
    slices: list[SliceRecord]
    idle_rss_bytes: int | None = Field(default=None, description="resident set of the tree at rest before any load")
    idle_pss_bytes: int | None = Field(default=None, description="the same with shared pages shared out")


class Record(Stored):
    """One cell of one run."""

    schema_: Literal["appserver-matrix/record/1"] = Field(default="appserver-matrix/record/1", alias="schema")
    id: str
    run: str = Field(default="", description="id of the run that measured it; '' in records of before it was kept")
    suite: str
    probe: str
    cell: CellPoint
    baseline: bool
    outcome: Outcome
    reason: Reason | None
    note: str
    declared: dict[str, Any]
    package: str = Field(default="", description="distribution that owns the socket; '' in older records")
    command: str = Field(description="launch command with its placeholders, as the matrix has it")
    image: ImageFacts | None
    rounds: list[RoundRecord] = Field(default=[], description="of the load probe")
    summary: Summary | None = Field(default=None, description="of the load probe")
    reference: str = Field(default="", description="id of the cell that the ratio refers to; '' without any")
    ceiling_rps: float | None = Field(default=None, description="of the null responder under the same load")
    verdicts: list[VerdictRecord] = Field(default=[])
    judged: Judgement | None = Field(default=None, description="of the load probe; null: by the code that measured")
    install: InstallSection | None = Field(default=None, description="of the install probe")
    startup: StartupSection | None = Field(default=None, description="of the startup probe")
    shutdown: ShutdownSection | None = Field(default=None, description="of the shutdown probe")
    deploy: DeploySection | None = Field(default=None, description="of the deploy probe")
    written: str


def record_type(probe: str) -> type[Record]:
    """What holds the records of a probe: `Record`, with a field for its section where it has none of that name yet."""
    section = PROBES[probe].section if probe in PROBES else None
    if section is None or probe in Record.model_fields:
        return Record
    described: Any = (section | None, Field(default=None, description=f"of the {probe} probe"))
    return create_model(f"{section.__name__}Record", __base__=Record, **{probe: described})


class CeilingRecord(Stored):
    """What the load generator reached against its null responder, under one shape of load."""

    body_bytes: int
    tls: bool
    connections: int
    rps: float
    client_share: float


class RunFile(Stored):
    """run.json: what all records of a run share."""

    schema_: Literal["appserver-matrix/run/1"] = Field(default="appserver-matrix/run/1", alias="schema")
    id: str
    suite: str
    baseline: str
    started: str
    finished: str | None = None
    complete: bool = False
    fingerprint: str = Field(description="over matrix, code, images and machine: records of two of them never mix")
    code: dict[str, str] = Field(description="that measured")
    judged: Judgement | None = Field(default=None, description="that judged last; null: the code that measured")
    engine: dict[str, Any]
    placement: dict[str, Any]
    machine: dict[str, Any] = Field(description="facts as the load generator saw them, beside the server")
    schedule: dict[str, Any]
    seed: int
    cells: list[str]
    against: dict[str, Any] = Field(default={}, description="ratios refer to the same server with these values")
    apart: list[str] = Field(default=[], description="axes in which compared cells never differ")
    view: dict[str, Any] = Field(default={}, description="the table that the suite is read in")
    stopped: str = Field(default="", description="with a precision asked for: why no further round was measured")
    left_out: list[dict[str, str]]
    ceilings: list[CeilingRecord] = Field(default=[])
    costs: dict[str, float | None] = Field(
        default_factory=dict, description="wall time by purpose, overhead, own CPU; null where it is not told apart"
    )
