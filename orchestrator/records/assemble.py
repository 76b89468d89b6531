"""From a cell and its rounds to its record: figures, ratio to the baseline, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from orchestrator.cells.expand import Selection
from orchestrator.cells.model import Cell
from orchestrator.engines.protocol import Limits, Placement, Side
from orchestrator.images.plan import BuiltImage
from orchestrator.measure.ceiling import Ceiling, Comparison
from orchestrator.measure.fingerprint import Fingerprint
from orchestrator.measure.images import failure_of
from orchestrator.measure.results import Check, Failure, Mismatch, Round, Slice, Stage
from orchestrator.records.model import (
    CellPoint,
    Estimate,
    ImageFacts,
    Outcome,
    RatioBound,
    Reason,
    Record,
    RoundRecord,
    SliceRecord,
    Summary,
    VerdictRecord,
)
from orchestrator.verdicts import summary as over
from orchestrator.verdicts.rules import Facts, Verdict, judge
from orchestrator.verdicts.stats import Interval
from orchestrator.verdicts.summary import Figures, figures, per_cpu_s_of, rps_of

_OUTCOMES: dict[str, Outcome] = {
    "build": "not_built",
    "install": "not_installed",
    "start": "not_started",
    "check": "check_failed",
    "load": "load_failed",
}


_STAGES: dict[str, Stage] = {"build": "build", "install": "install", "start": "start", "check": "check", "load": "load"}


@dataclass(frozen=True)
class Measured:
    """All that is known of a cell. `image` is a Failure where there is none."""

    cell: Cell
    image: BuiltImage | Failure
    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class Judging:
    """What cells are judged by, beside their own rounds. `architecture`: the machine's, as `uname -m` names it.

    `limits`: those that the engine asked for.
    """

    placement: Placement
    architecture: str
    ceilings: Mapping[Comparison, Ceiling] = field(default_factory=dict)
    limits: Mapping[Side, Limits] = field(default_factory=dict)


def records(selection: Selection, measured: Sequence[Measured], judging: Judging) -> list[Record]:
    """The records of a run's cells, each with its ratio to the cell that the selection refers it to."""
    judged = {item.cell.id: _judged(item, judging) for item in measured}
    by_id = {item.cell.id: item for item in measured}
    references = selection.references()
    made = []
    for item in measured:
        found, verdicts = judged[item.cell.id]
        reference = by_id.get(references.get(item.cell.id, ""))
        ceiling = judging.ceilings.get(item.cell.comparison)
        summary = _summary(item, found, verdicts, reference, judged, ceiling) if found else None
        made.append(_record(selection, item, summary, verdicts, reference))
    return made


def _judged(item: Measured, judging: Judging) -> tuple[Figures | None, tuple[Verdict, ...]]:
    found = figures(item.rounds)
    image = item.image
    emulated = isinstance(image, BuiltImage) and _other_architecture(image.architecture, judging.architecture)
    spread = found.spread.between if found else None
    facts = Facts(item.cell, item.rounds, judging.placement, emulated, spread, judging.limits)
    return found, judge(facts)


def _other_architecture(image: str, machine: str) -> bool:
    names = {"amd64": "x86_64", "arm64": "aarch64"}
    return bool(image and machine) and names.get(image, image) != names.get(machine, machine)


def _summary(
    item: Measured,
    found: Figures,
    verdicts: Sequence[Verdict],
    reference: Measured | None,
    judged: Mapping[str, tuple[Figures | None, tuple[Verdict, ...]]],
    ceiling: Ceiling | None,
) -> Summary:
    ratio = None if item.cell.open else _ratio(item, reference, rps_of)  # an open loop's throughput is asked for
    cpu_ratio = _ratio(item, reference, per_cpu_s_of)
    bound: RatioBound = ""
    if ratio and reference is not None and reference is not item:
        bound = ratio_bound(verdicts, judged[reference.cell.id][1])
    return Summary(
        slices=found.slices,
        requests=found.requests,
        errors=found.errors,
        rps=_estimate(found.rps),
        rate_asked=found.rate_asked,
        rate_share=found.rate_share,
        ceiling_share=found.rps.value / ceiling.rps if ceiling and ceiling.rps else None,
        ratio=_estimate(ratio) if ratio else None,
        ratio_bound=bound,
        between=found.spread.between,
        within=found.spread.within,
        latency_us=dict(found.latency_us),
        latency_intervals_us={name: _estimate(one) for name, one in found.latency_intervals_us.items()},
        cpu_us_per_request=_estimate(found.cpu_us) if found.cpu_us else None,
        cpu_ratio=_estimate(cpu_ratio) if cpu_ratio else None,
        cpu_user_us_per_request=found.cpu_user_us,
        cpu_system_us_per_request=found.cpu_system_us,
        voluntary_switches_per_request=found.voluntary_switches,
        involuntary_switches_per_request=found.involuntary_switches,
        client_cpu_us_per_request=found.client_cpu_us,
        memory_bytes=found.memory_bytes,
        memory_pss_bytes=found.memory_pss_bytes,
        memory_peak_bytes=found.memory_peak_bytes,
        memory_idle_bytes=found.memory_idle_bytes,
        memory_idle_pss_bytes=found.memory_idle_pss_bytes,
        memory_per_worker_bytes=found.memory_pss_bytes // item.cell.workers if found.memory_pss_bytes else None,
        processes=found.processes,
        connections_per_request=found.connections_per_request,
        ready_s=found.ready_s,
    )


def _ratio(
    item: Measured, reference: Measured | None, of: Callable[[Mapping[str, Any]], float | None]
) -> Interval | None:
    """Of the cell's figure to its reference's; a reference is 1 exactly."""
    found = over.ratio(item.rounds, reference.rounds, of) if reference else None
    return Interval(1.0, 1.0, 1.0) if found and item is reference else found


def ratio_bound(own: Sequence[Verdict], baseline: Sequence[Verdict]) -> RatioBound:
    """What a ratio is worth where its parts are lower bounds: one below the line makes it an upper bound."""
    above = any(verdict.effect == "bound" for verdict in own)
    below = any(verdict.effect == "bound" for verdict in baseline)
    if above and below:
        return "?"
    return ">=" if above else "<=" if below else ""


def _record(
    selection: Selection,
    item: Measured,
    summary: Summary | None,
    verdicts: Sequence[Verdict],
    reference: Measured | None,
) -> Record:
    unexplained = Failure("load", "no right answer in any slice" if item.rounds else "no round is finished")
    failure = None if summary else _failure(item) or unexplained
    return Record(
        **_common(selection, item.cell, item.image, failure),
        reference=reference.cell.id if reference else "",
        rounds=[_round(round_) for round_ in item.rounds],
        summary=summary,
        verdicts=[VerdictRecord(**asdict(verdict)) for verdict in verdicts],
    )


def probed_record(
    selection: Selection, cell: Cell, image: BuiltImage | Failure, found: Mapping[str, Any] | Failure
) -> Record:
    """The record of a probe that takes one cell at a time; the section has the probe's name.

    The install probe has one where nothing is installed, too, beside the reason.
    """
    failure = found if isinstance(found, Failure) else failure_of(image)
    common = _common(selection, cell, image, failure)
    return Record.model_validate(common if isinstance(found, Failure) else {**common, selection.probe: found})


def _common(selection: Selection, cell: Cell, image: BuiltImage | Failure, failure: Failure | None) -> dict[str, Any]:
    """The fields that every record has."""
    return {
        "id": cell.id,
        "suite": selection.suite,
        "probe": selection.probe,
        "cell": _point(cell),
        "baseline": selection.is_baseline(cell),
        "outcome": _OUTCOMES[failure.stage] if failure else "measured",
        "reason": _reason(failure) if failure else None,
        "note": cell.variant.note,
        "declared": cell.variant.declares.model_dump(exclude_none=True),
        "package": cell.variant.package,
        "command": cell.variant.run,
        "image": _image(image) if isinstance(image, BuiltImage) else None,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _failure(item: Measured) -> Failure | None:
    if failure := failure_of(item.image):
        return failure
    return next((round_.failure for round_ in item.rounds if round_.failure), None)


def _point(cell: Cell) -> CellPoint:
    return CellPoint(
        server=cell.variant.server,
        variant=cell.variant.variant,
        flavour=cell.flavour,
        mode=cell.mode,
        python=cell.python,
        app=cell.app,
        protocol=cell.variant.protocol,
        workload=cell.workload,
        workers=cell.workers,
        threads=cell.threads,
        tls=cell.tls,
        connections=cell.connections,
        tuned=cell.tuned,
        twin=cell.twin,
        open=cell.open,
    )


def _image(image: BuiltImage) -> ImageFacts:
    return ImageFacts(
        reference=image.reference,
        digest=image.digest,
        architecture=image.architecture,
        base=image.base.reference,
        base_digest=image.base.digest,
        standin=image.base.standin,
        base_note=image.base.note,
        versions=image.versions,
        install=dict(image.install),
    )


def _round(round_: Round) -> RoundRecord:
    check = round_.check
    return RoundRecord(
        number=round_.number,
        ready_s=check.ready_s if check else None,
        fingerprint=check.fingerprint.told() if check else None,
        mismatches=[asdict(mismatch) for mismatch in check.mismatches] if check else [],
        unverified=list(check.unverified) if check else [],
        keepalive=check.keepalive if check else None,
        access_log=check.access_log if check else None,
        idle_rss_bytes=check.idle_rss_bytes if check else None,
        idle_pss_bytes=check.idle_pss_bytes if check else None,
        failure=_reason(round_.failure) if round_.failure else None,
        slices=[
            SliceRecord(
                order=s.order,
                started=s.started,
                orchestrator_s=round(s.orchestrator_s, 4),
                load=_slim(s.load),
                rate=s.rate,
            )
            for s in round_.slices
        ],
    )


def _slim(load: Mapping[str, Any]) -> dict[str, Any]:
    """The load generator's document without its echo of the request, which is the cell's workload."""
    return {name: value for name, value in load.items() if name != "spec"}


def _reason(failure: Failure) -> Reason:
    return Reason(stage=failure.stage, line=failure.reason, detail=failure.detail)


def _estimate(interval: Interval) -> Estimate:
    return Estimate(value=interval.value, low=interval.low, high=interval.high)


def rounds_of(record: Record) -> tuple[Round, ...]:
    """The rounds that a record holds, so that a killed run goes on after them."""
    return tuple(_round_again(stored) for stored in record.rounds)


def _round_again(stored: RoundRecord) -> Round:
    check = None
    if stored.fingerprint is not None:
        mismatches = tuple(Mismatch(**mismatch) for mismatch in stored.mismatches)
        check = Check(
            stored.ready_s or 0.0, Fingerprint.model_validate(stored.fingerprint), mismatches, bool(stored.keepalive),
            bool(stored.access_log), stored.idle_rss_bytes, stored.idle_pss_bytes, tuple(stored.unverified),
        )  # fmt: skip
    slices = tuple(Slice(s.order, s.started, s.load, s.orchestrator_s, s.rate) for s in stored.slices)
    failed = stored.failure
    failure = Failure(_STAGES[failed.stage], failed.line, failed.detail) if failed else None
    return Round(stored.number, check, slices, failure)
