"""From a cell and its rounds to its record: first the evidence, then what is judged of it.

`evidence` holds what was measured and is written before anything is judged; `judged` derives the figures, the ratio to
the reference and the verdicts from records alone, so that they can be derived again whenever the rules get better.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import msgspec

from loadgen.contract import LoadResult, encode
from orchestrator.engines.protocol import Limits, Placement, Side
from orchestrator.errors import SpecError, fault
from orchestrator.evidence.model import (
    CellPoint,
    ImageFacts,
    Judgement,
    Outcome,
    Reason,
    Record,
    RoundRecord,
    SliceRecord,
    Summary,
    VerdictRecord,
    record_type,
)
from orchestrator.figures import RatioBound
from orchestrator.images.plan import BuiltImage
from orchestrator.judge.figures import CellSlices, Pair, alone, summary
from orchestrator.judge.rules import Facts, Verdict, judge
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.expand import Selection
from orchestrator.probes.fingerprint import Fingerprint
from orchestrator.probes.images import failure_of
from orchestrator.probes.load.ceiling import Ceiling, Comparison
from orchestrator.probes.results import Check, Failure, Mismatch, Round, Slice, Stage

T = TypeVar("T")

_OUTCOMES: dict[str, Outcome] = {
    "build": "not_built",
    "install": "not_installed",
    "start": "not_started",
    "check": "check_failed",
    "load": "load_failed",
    "judge": "not_judged",
}


_STAGES: dict[str, Stage] = {"build": "build", "install": "install", "start": "start", "check": "check", "load": "load"}
_UNJUDGED = Failure("judge", "measured, and not judged yet: `matrix judge` does it from the rounds of the record")


@dataclass(frozen=True)
class Measured:
    """All that is known of a cell. `image` is a Failure where there is none."""

    cell: Cell
    image: BuiltImage | Failure
    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class Judging:
    """What cells are judged by, beside their own rounds. `architecture`: the machine's, as `uname -m` names it.

    `limits`: those that the engine asked for; `by`: the code that judges.
    """

    placement: Placement
    architecture: str
    limits: Mapping[Side, Limits] = field(default_factory=dict)
    by: Judgement | None = None


@dataclass(frozen=True)
class _Judged:
    """A cell on its own, before it is compared with another."""

    cell: CellSlices
    figures: Mapping[str, Any] | None
    verdicts: tuple[Verdict, ...]


def evidence(
    selection: Selection, measured: Sequence[Measured], ceilings: Mapping[Comparison, Ceiling], run: str = ""
) -> list[Record]:
    """The records of a run's cells with all that was measured, and nothing that follows from it."""
    references, known = selection.references(), {item.cell.id for item in measured}
    made = []
    for item in measured:
        reference, ceiling = references.get(item.cell.id, ""), ceilings.get(item.cell.comparison)
        record = Record(
            **_common(selection, item.cell, item.image, failure_of(item.image) or _UNJUDGED, run),
            reference=reference if reference in known else "",
            ceiling_rps=ceiling.rps if ceiling else None,
            rounds=[_round(round_) for round_ in item.rounds],
        )
        made.append(record)
    return made


def judged(evidence: Sequence[Record], judging: Judging) -> list[Record]:
    """The same records with their figures, ratios and verdicts; those they had are forgotten.

    A cell that cannot be judged says so as its outcome, keeps its rounds, and leaves the others as they are.
    """
    alone = {record.id: _guarded(partial(_alone, record, judging)) for record in evidence}
    return [_settled(record, alone, judging.by) for record in evidence]


def _guarded(work: Callable[[], T]) -> T | Failure:
    """What `work` returns, or what went wrong in it: a fault of this program must not cost what was measured."""
    try:
        return work()
    except Exception as error:
        return Failure("judge", fault(error), traceback.format_exc()[-2000:])


def _alone(record: Record, judging: Judging) -> _Judged:
    rounds = rounds_of(record)
    cell = CellSlices(rounds, record.cell.workers, record.ceiling_rps, bool(record.cell.open))
    found = alone(cell)
    emulated = record.image is not None and _other_architecture(record.image.architecture, judging.architecture)
    spread = cell.spread.between if found else None
    facts = Facts(record.cell, rounds, judging.placement, emulated, spread, judging.limits)
    return _Judged(cell, found, judge(facts))


def _settled(record: Record, alone: Mapping[str, _Judged | Failure], by: Judgement | None) -> Record:
    own, reference = alone[record.id], alone.get(record.reference)
    if isinstance(own, Failure):
        return _concluded(record, by, None, (), _reason(own))
    found = _guarded(partial(_summary, record, own, reference if isinstance(reference, _Judged) else None))
    if isinstance(found, Failure):
        return _concluded(record, by, None, (), _reason(found))
    return _concluded(record, by, found, own.verdicts, None if found else _why_none(record, own.cell.rounds))


def _concluded(
    record: Record, by: Judgement | None, summary: Summary | None, verdicts: Sequence[Verdict], reason: Reason | None
) -> Record:
    said = {
        "outcome": _OUTCOMES[reason.stage] if reason else "measured",
        "reason": reason,
        "summary": summary,
        "verdicts": [VerdictRecord(**asdict(verdict)) for verdict in verdicts],
        "judged": by,
        "written": _now(),
    }
    return record.model_copy(update=said)


def _why_none(record: Record, rounds: Sequence[Round]) -> Reason:
    """Why a cell has no figures: there is no image, a round failed, or nobody answered right."""
    if record.reason and record.outcome in ("not_built", "not_installed"):
        return record.reason
    failed = next((round_.failure for round_ in rounds if round_.failure), None)
    silent = Failure("load", "no right answer within any slice" if rounds else "no round is finished")
    return _reason(failed or silent)


def _other_architecture(image: str, machine: str) -> bool:
    names = {"amd64": "x86_64", "arm64": "aarch64"}
    return bool(image and machine) and names.get(image, image) != names.get(machine, machine)


def _summary(record: Record, own: _Judged, reference: _Judged | None) -> Summary | None:
    if own.figures is None:
        return None
    bound = ratio_bound(own.verdicts, reference.verdicts) if reference else ""
    pair = Pair(own.cell, reference.cell if reference else None, record.reference == record.id, bound)
    return summary(own.figures, pair)


def ratio_bound(own: Sequence[Verdict], baseline: Sequence[Verdict]) -> RatioBound:
    """What a ratio is worth where its parts are lower bounds: one below the line makes it an upper bound."""
    above = any(verdict.effect == "bound" for verdict in own)
    below = any(verdict.effect == "bound" for verdict in baseline)
    if above and below:
        return "?"
    return ">=" if above else "<=" if below else ""


def probed_record(
    selection: Selection, cell: Cell, image: BuiltImage | Failure, found: Mapping[str, Any] | Failure, run: str = ""
) -> Record:
    """The record of a probe that takes one cell at a time; the section has the probe's name.

    The install probe has one where nothing is installed, too, beside the reason.
    """
    failure = found if isinstance(found, Failure) else failure_of(image)
    common, record = _common(selection, cell, image, failure, run), record_type(selection.probe)
    if isinstance(found, Failure):
        return record.model_validate(common)
    made = _guarded(partial(record.model_validate, {**common, selection.probe: found}))
    if isinstance(made, Record):
        return made
    kept = replace(made, detail=json.dumps(found, default=str))  # what was measured, in the place of a log
    return record.model_validate(_common(selection, cell, image, kept, run))


def _common(
    selection: Selection, cell: Cell, image: BuiltImage | Failure, failure: Failure | None, run: str
) -> dict[str, Any]:
    """The fields that every record has."""
    return {
        "id": cell.id,
        "run": run,
        "suite": selection.suite,
        "probe": selection.probe,
        "cell": CellPoint.model_validate(cell.point),
        "baseline": selection.is_baseline(cell),
        "outcome": _OUTCOMES[failure.stage] if failure else "measured",
        "reason": _reason(failure) if failure else None,
        "note": cell.variant.note,
        "declared": cell.variant.declares.model_dump(exclude_none=True),
        "package": cell.variant.package,
        "command": cell.variant.run,
        "image": _image(image) if isinstance(image, BuiltImage) else None,
        "written": _now(),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


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


def _slim(load: LoadResult) -> dict[str, Any]:
    """The load generator's document without its echo of the request, which is the cell's workload."""
    return {name: value for name, value in json.loads(encode(load)).items() if name != "spec"}


def _reason(failure: Failure) -> Reason:
    return Reason(stage=failure.stage, line=failure.reason, detail=failure.detail)


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
    slices = tuple(Slice(s.order, s.started, _load(s), s.orchestrator_s, s.rate) for s in stored.slices)
    failed = stored.failure
    failure = Failure(_STAGES[failed.stage], failed.line, failed.detail) if failed else None
    return Round(stored.number, check, slices, failure)


def _load(stored: SliceRecord) -> LoadResult:
    """Raises SpecError for a document that is none."""
    try:
        return msgspec.convert(stored.load, LoadResult)
    except msgspec.ValidationError as error:
        raise SpecError(f"the slice of {stored.started} holds no load generator's document: {error}") from error
