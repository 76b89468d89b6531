"""Which code judges a run, and judging a stored run again whenever the rules have got better."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from orchestrator.engines.protocol import Limits, Placement, Side
from orchestrator.errors import SpecError
from orchestrator.evidence.model import Judgement, Record, RunFile
from orchestrator.evidence.store import read_run, write_records, write_run
from orchestrator.images.context import read_context
from orchestrator.images.plan import ROOT
from orchestrator.judge.assemble import Judging, judged


def judge_again(folder: Path) -> tuple[RunFile, list[Record]]:
    """Derive the figures and verdicts of a run anew from the rounds that its records hold, with the rules of now.

    What was measured stays as it is. Raises SpecError where the folder holds no run, a damaged one, or one of a probe
    that has no rounds.
    """
    run, kept = read_run(folder)
    if not any(record.rounds for record in kept):
        raise SpecError(f"{folder} holds no rounds: only the load probe has figures that are derived")
    by = judgement()
    made = judged(
        [_with_ceiling(record) for record in kept], Judging(_placement(run), _architecture(run), _limits(run), by)
    )
    write_records(folder, made)
    run = run.model_copy(update={"judged": by})
    write_run(folder, run)
    return run, made


def _with_ceiling(record: Record) -> Record:
    """Records of before the ceiling was kept have it in its share."""
    summary = record.summary
    if record.ceiling_rps is not None or summary is None or not summary.ceiling_share:
        return record
    return record.model_copy(update={"ceiling_rps": summary.rps.value / summary.ceiling_share})


def _placement(run: RunFile) -> Placement:
    given = run.placement
    return Placement(tuple(given["server"]), tuple(given["client"]), bool(given.get("shared")))


def _architecture(run: RunFile) -> str:
    return str(run.machine.get("machine", ""))


def _limits(run: RunFile) -> Mapping[Side, Limits]:
    """Runs of before they were kept have none."""
    given = run.engine.get("limits") or {}
    sides: tuple[Side, ...] = ("server", "client")
    return {side: Limits(**given[side]) for side in sides if given.get(side)}


def judgement() -> Judgement:
    """By the code that runs now."""
    return Judgement(**code_version(), at=datetime.now(UTC).isoformat(timespec="seconds"))


@cache
def code_version() -> dict[str, str]:
    """The commit where git knows it, and a digest of all that measures: orchestrator, load generator, images."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    try:
        commit = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=10).stdout.strip()
    except OSError:
        commit = ""
    files = [name for name in ("orchestrator", "loadgen", "images") if (ROOT / name).is_dir()]
    context = read_context(ROOT, files)
    kept = {name: content for name, content in context.files.items() if not name.endswith("ca.crt")}
    return {"commit": commit or "unknown", "digest": replace(context, files=kept).digest()}
