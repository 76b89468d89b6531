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

    stage: str = Field(
        description="`build`, `install`, `start`, `check`, `load`, or `judge` where nothing is wrong with the cell"
    )
    line: str = Field(description="the first line that tells, mostly in the server's or pip's own words")
    detail: str = Field(default="", description="the end of the log")


class Judgement(Stored):
    """The code that derived figures and verdicts from what was measured, maybe long after it, and when."""

    commit: str = Field(description="as git names it")
    digest: str = Field(description="of all files that measure and judge")
    at: str = Field(description="when")


class ImageFacts(Stored):
    """What the cell ran in."""

    reference: str = Field(description="name of the image, or folder of the virtual environment")
    digest: str = Field(description="digest of the image")
    architecture: str = Field(description="as the engine names it")
    base: str = Field(description="the base that was really used")
    base_digest: str = Field(description="its digest")
    standin: str = Field(description="empty for an official base; else the stand-in that was used in its place")
    base_note: str = Field(description="why that base")
    versions: dict[str, str] = Field(description="version of each distribution that the server's install brought")
    install: dict[str, Any] = Field(
        description="the whole report of the install step: outcome, files chosen, bytes, seconds "
        "([images.md](images.md))"
    )


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
    rule: str = Field(description="name, see [verdicts.md](verdicts.md)")
    effect: Literal["void", "unranked", "bound", "mark"] = Field(description="`void`, `unranked`, `bound` or `mark`")
    text: str = Field(description="what was seen, in the first slice that showed it")
    cure: str = Field(description="what to do")
    slices: int = Field(description="how many slices showed it; 0 for a rule of the whole cell")
    of: int = Field(description="how many there are; 0 for a rule of the whole cell")


class SliceRecord(Stored):
    """One timed stretch; `load` is the load generator's document (load-result.schema.json)."""

    order: int = Field(description="position among all slices of the round, whose order is random")
    started: str = Field(description="time of the clock")
    orchestrator_s: float = Field(description="CPU that the orchestrator used while the slice ran")
    load: dict[str, Any] = Field(
        description="the load generator's own document (load-result.schema.json) but for its echo of the request; "
        "the latency histogram is in it whole"
    )
    rate: float | None = Field(
        default=None, description="of an open loop: requests per second that were asked for; null for a closed one"
    )


class RoundRecord(Stored):
    number: int = Field(description="counted from 1")
    ready_s: float | None = Field(
        description="from the first try to reach the server to its first right answer; null where there was none"
    )
    fingerprint: dict[str, Any] | None = Field(
        description="what the app reports of what runs: server, loop, parser, worker class, Python, versions "
        "([apps.md](apps.md))"
    )
    mismatches: list[dict[str, str]] = Field(
        description="each declared field that differs: `field`, `declared`, `found`"
    )
    unverified: list[str] = Field(
        default=[],
        description="declared fields that could not be found out, for which verdict `unverified` marks the figure",
    )
    keepalive: bool | None = Field(description="whether the server keeps connections")
    access_log: bool | None = Field(description="whether it logs each request")
    failure: Reason | None = Field(description="null, or why this round has no or not all slices")
    slices: list[SliceRecord]
    idle_rss_bytes: int | None = Field(
        default=None,
        description="resident set of the whole tree at rest, after the check and before any load; null where it may "
        "not be read",
    )
    idle_pss_bytes: int | None = Field(
        default=None, description="the same with shared pages divided among the processes that share them"
    )


class Record(Stored):
    """One cell of one run."""

    schema_: Literal["appserver-matrix/record/2"] = Field(
        default="appserver-matrix/record/2", alias="schema", description="`appserver-matrix/record/2`"
    )
    id: str = Field(description="readable and stable: `gunicorn/gthread·slim·wheel·py3.13·flask·w1·t4·c32`")
    run: str = Field(default="", description="id of the run that measured it; empty in records of before it was kept")
    suite: str = Field(description="name of the suite")
    probe: str = Field(description="what was done to the cell, such as `load`")
    cell: CellPoint = Field(description="the axes")
    baseline: bool = Field(
        description="whether ratios may refer to it: its variant is the run's baseline, or it has the values of "
        "`against`"
    )
    outcome: Outcome = Field(
        description="`measured`, `not_built`, `not_installed`, `not_started` (it never gave a right answer), "
        "`check_failed` (it answers wrongly, or is not what is declared), `load_failed`, or `not_judged` "
        "(it was measured, and its rounds are here, but no figures were derived yet, or a fault of this "
        "program prevents it)"
    )
    reason: Reason | None = Field(description="null where measured, else a [Reason](#reason)")
    note: str = Field(description="what matrix.yaml notes of the server")
    declared: dict[str, Any] = Field(description="the configuration that matrix.yaml declares")
    package: str = Field(
        default="", description="the distribution that owns the socket; empty in records written before it was kept"
    )
    command: str = Field(description="launch command with its placeholders")
    image: ImageFacts | None = Field(description="[ImageFacts](#imagefacts); null where no image came to be")
    rounds: list[RoundRecord] = Field(default=[], description="one [RoundRecord](#roundrecord) for each fresh start")
    summary: Summary | None = Field(
        default=None,
        description="the figures over all slices: [Summary](#summary); null where no slice has a right answer",
    )
    reference: str = Field(default="", description="id of the cell that its ratio refers to; empty where it has none")
    ceiling_rps: float | None = Field(
        default=None,
        description="what the null responder reached under the same load; null where that was not measured",
    )
    verdicts: list[VerdictRecord] = Field(
        default=[], description="the gravest first: [VerdictRecord](#verdictrecord), see [verdicts.md](verdicts.md)"
    )
    judged: Judgement | None = Field(
        default=None,
        description="the code that derived `summary` and `verdicts`: [Judgement](#judgement); null: the code that "
        "measured, or another probe",
    )
    install: InstallSection | None = Field(
        default=None, description="of the install probe: [InstallSection](#installsection); null for other probes"
    )
    startup: StartupSection | None = Field(
        default=None, description="of the startup probe: [StartupSection](#startupsection); null for other probes"
    )
    shutdown: ShutdownSection | None = Field(
        default=None, description="of the shutdown probe: [ShutdownSection](#shutdownsection); null for other probes"
    )
    deploy: DeploySection | None = Field(
        default=None, description="of the deploy probe: [DeploySection](#deploysection); null for other probes"
    )
    written: str = Field(description="when the file was written")


def record_type(probe: str) -> type[Record]:
    """What holds the records of a probe: `Record`, with a field for its section where it has none of that name yet."""
    section = PROBES[probe].section if probe in PROBES else None
    if section is None or probe in Record.model_fields:
        return Record
    described: Any = (section | None, Field(default=None, description=f"of the {probe} probe"))
    return create_model(f"{section.__name__}Record", __base__=Record, **{probe: described})


class CeilingRecord(Stored):
    """What the load generator reached against its null responder, under one shape of load."""

    body_bytes: int = Field(description="length of the answer's body")
    tls: bool = Field(description="whether the connections were encrypted")
    connections: int = Field(description="how many")
    rps: float = Field(description="right answers a second")
    client_share: float = Field(description="CPU of the load generator over wall time")


class RunFile(Stored):
    """run.json: what all records of a run share."""

    schema_: Literal["appserver-matrix/run/1"] = Field(
        default="appserver-matrix/run/1", alias="schema", description="`appserver-matrix/run/1`"
    )
    id: str = Field(
        description="name that the folder was given: time of the start, the suite, and six random digits, so that no "
        "two runs share it"
    )
    suite: str = Field(description="name of the suite in matrix.yaml")
    baseline: str = Field(
        description="server/variant that ratios refer to; empty with `against`, and for probes that give no ratio"
    )
    started: str = Field(description="when measuring was begun")
    finished: str | None = Field(default=None, description="when the last round ended; null until then")
    complete: bool = Field(default=False, description="whether all rounds of all cells are on record")
    fingerprint: str = Field(
        description="digest of matrix, cells, schedule (but `precision`, `max_rounds` and `extra_rounds`), code, "
        "images, engine, CPU, placement and seed: a run goes on only where it is the same"
    )
    code: dict[str, str] = Field(
        description="that measured: `commit` as git names it, and `digest` of all files that measure"
    )
    judged: Judgement | None = Field(
        default=None,
        description="the code that derived figures and verdicts last, and when: [Judgement](#judgement); null in runs "
        "of before it was kept, and for probes that have none",
    )
    engine: dict[str, Any] = Field(
        description="`name` (docker, local, memory), `version`, the `cpus` that it may give out, `why` it was taken, "
        "and the `limits` that it asks for, of `server` and `client`: `memory_bytes`, `swap_bytes`, "
        "`pids`"
    )
    placement: dict[str, Any] = Field(
        description="CPUs of the `server` and of the `client` (the load generator); `shared` where there is only one"
    )
    machine: dict[str, Any] = Field(
        description="facts as the load generator saw them beside the server: kernel, CPU model, governor, memory, "
        "libc, hypervisor …; null where unknown"
    )
    schedule: dict[str, Any] = Field(
        description="`rounds`, `precision`, `max_rounds`, `extra_rounds`, `slices` of each round, `slice_s`, "
        "`warmup_s`, `first_warmup_s`; of other probes their own fields"
    )
    seed: int = Field(description="of the random order of slices")
    cells: list[str] = Field(description="ids of all cells, in the order of the matrix")
    against: dict[str, Any] = Field(
        default={},
        description="axes with the values that ratios refer to: each cell to the one that has them and agrees in all "
        "else; empty with a baseline",
    )
    apart: list[str] = Field(default=[], description="axes in which cells that are compared never differ")
    view: dict[str, Any] = Field(
        default={},
        description="the table that the suite is read in: `across`, the axis of its columns, and `show`, its figures",
    )
    stopped: str = Field(
        default="",
        description="why no further round was measured, where a precision was asked for, or rounds lay far apart; "
        "else empty",
    )
    left_out: list[dict[str, str]] = Field(
        description="`id` and `why` of each cell or server that the suite leaves out"
    )
    ceilings: list[CeilingRecord] = Field(
        default=[],
        description="what the load generator reaches here at all, for each shape of load: a list of CeilingRecord",
    )
    costs: dict[str, float | None] = Field(
        default_factory=dict,
        description="`images_s`, `rounds_s`, `planned_s` (timed stretches and warm-ups) in wall time, "
        "`overhead_s_per_cell`, `orchestrator_cpu_share` of one CPU while slices ran; over all sittings "
        "of a resumed run; the last three null for probes without timed stretches",
    )
