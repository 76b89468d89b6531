"""When a run stops: `--precision` and `--max-rounds` in the place of what its suite, or its earlier part, says."""

from __future__ import annotations

from dataclasses import replace

import typer

from orchestrator.errors import SpecError
from orchestrator.evidence.model import RunFile
from orchestrator.layout.text import count
from orchestrator.matrix.expand import Selection
from orchestrator.matrix.probe_settings import SETTINGS


def share(text: str) -> float:
    """`3%`, `3 %` and `0.03` are one; from 0 to under 1. Raises BadParameter."""
    number, percent = text.strip().removesuffix("%").strip(), text.strip().endswith("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if 0 <= value < 1:
        return value
    raise typer.BadParameter(f"{text!r} is not a share from 0 to under 1: 3 % is written 3% or 0.03")


def with_stopping(
    selection: Selection, precision: float | None, max_rounds: int | None, earlier: RunFile | None
) -> Selection:
    """The selection with the precision and the most rounds asked for.

    None: as the earlier part of the run had it where one is gone on with, else as the suite has it. Raises SpecError.
    """
    plan, before = selection.schedule, earlier.schedule if earlier else {}
    if not SETTINGS[selection.probe].compares and (precision or max_rounds):
        raise SpecError(
            f"suite {selection.suite!r} gives no ratios: its probe is {selection.probe}",
            next_step="leave out --precision and --max-rounds",
        )
    wanted = before.get("precision", plan.precision) if precision is None else precision
    most = before.get("max_rounds", plan.max_rounds) if max_rounds is None else max_rounds
    if max_rounds is not None and not wanted:
        raise SpecError("--max-rounds is for runs that go on to a precision", next_step="add --precision 3%")
    if max_rounds is not None and max_rounds < plan.rounds:
        raise SpecError(
            f"--max-rounds {max_rounds} is less than the {count(plan.rounds, 'round')} of suite {selection.suite!r}",
            next_step=f"ask for {plan.rounds} or more",
        )
    told = {"precision": wanted, "max_rounds": max(most, plan.rounds)}
    return replace(selection, schedule=plan.model_copy(update=told))
