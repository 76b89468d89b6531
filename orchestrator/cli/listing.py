"""`matrix list`: the cells of a suite, what is left out and why, how long it would take, and whether they work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from orchestrator.images.plan import images_of
from orchestrator.judge.precision import most_rounds, percent
from orchestrator.layout.text import count
from orchestrator.matrix.expand import Selection
from orchestrator.matrix.mistake import shown
from orchestrator.matrix.models import Matrix, Schedule
from orchestrator.matrix.probe_settings import SETTINGS
from orchestrator.probes.probe import CellByCell
from orchestrator.probes.registry import probe_named
from orchestrator.probes.results import Check
from orchestrator.probes.trial import Tried

LEFT_OUT_SHOWN = 12


def listing_json(selection: Selection) -> dict[str, Any]:
    """The same as one document; `schema` tells its form."""
    probe = probe_named(selection.probe)
    references = selection.references() if probe.settings.compares else {}
    return {
        "schema": "appserver-matrix/list/1",
        "suite": selection.suite,
        "baseline": selection.baseline,
        "against": dict(selection.against),
        "apart": list(selection.apart),
        "measuring_s": round(probe.seconds(selection), 1),
        "schedule": selection.schedule.model_dump(),
        "cells": [
            {
                "id": cell.id,
                "reference": references.get(cell.id, ""),
                "image": cell.image.id,
                "command": cell.variant.run,
                "options": cell.variant.options,
            }
            for cell in selection.cells
        ],
        "left_out": [{"id": item.id, "why": item.why} for item in selection.left_out],
    }


def show_listing(console: Console, matrix: Matrix, selection: Selection) -> None:
    """Cells in the order of the file; then what is left out, grouped by its reason."""
    about = matrix.suites[selection.suite].about
    console.print(f"[bold]{selection.suite}[/]: {about}" if about else f"[bold]{selection.suite}[/]")
    for line in compared(selection):
        console.print(f"[dim]{line}[/]", soft_wrap=True)
    references = set(selection.references().values()) if SETTINGS[selection.probe].compares else set()
    for cell in selection.cells:
        mark = "  [dim](reference)[/]" if cell.id in references else ""
        console.print(f"  {cell.id}{mark}", soft_wrap=True)
    _show_left_out(console, selection)
    images = images_of(matrix, selection.cells)
    console.print(f"\n{count(len(selection.cells), 'cell')} in {count(len(images), 'image')}; {_duration(selection)}")
    others = ", ".join(name for name in matrix.suites if name != selection.suite)
    named = f"Other suites: {others}. " if others else ""
    console.print(f"[dim]{named}Measure this one: matrix run {selection.suite}[/]")


def compared(selection: Selection) -> Iterator[str]:
    """What ratios refer to, and what is never compared."""
    if selection.against:
        values = ", ".join(f"{axis} {shown(value)}" for axis, value in selection.against.items())
        yield f"Each cell is compared with the one that has {values} and agrees in all else: (reference)."
    elif selection.baseline:
        yield f"Each cell is compared with {selection.baseline} under the same load: (reference)."
    if selection.apart:
        yield f"Cells that differ in {' or '.join(selection.apart)} are not compared with each other."


def tried_line(tried: Tried) -> str:
    """`matrix list --check` of one server: what runs, or why it would not be measured."""
    if tried.failures:
        return f"FAILED  {tried.launch}: {'; '.join(failure.reason for failure in tried.failures)}"
    return f"OK      {tried.launch}: {_seen(tried.check)}" if tried.check else f"OK      {tried.launch}"


def _seen(check: Check) -> str:
    """What an app tells of its server, in words; a field that it tells nothing of is left out."""
    told = check.fingerprint
    fields = {
        "": f"{told.server or 'a server that is not known'} {told.server_version or ''}".strip(),
        "loop ": told.loop,
        "parser ": told.parser,
        "worker class ": told.worker_class,
    }
    seen = [f"{name}{value}" for name, value in fields.items() if value]
    kept = "keeps connections" if check.keepalive else "closes connections"
    unverified = [f"not verified: {', '.join(check.unverified)}"] if check.unverified else []
    return ", ".join([*seen, kept, f"ready in {check.ready_s:.2f} s", *unverified])


def _duration(selection: Selection) -> str:
    """How they are measured, and an estimate of how long that takes."""
    plan, probe = selection.schedule, probe_named(selection.probe)
    about = f"about {probe.seconds(selection) / 60:.1f} minutes of measuring, building the images aside."
    if isinstance(probe.how, CellByCell):
        return f"the probe {probe.name} takes them one by one: {about}"
    each = f"{count(plan.rounds, 'round')} of {count(plan.slices, 'slice')} of {plan.slice_s:g} s"
    return f"{each}{_more_rounds(plan)}: {about}"


def _more_rounds(plan: Schedule) -> str:
    """How many rounds there may be beyond those planned, and until when; '' where there are none."""
    if (most := most_rounds(plan)) <= plan.rounds:
        return ""
    until = f"until ratios are known to {percent(plan.precision)}" if plan.precision else "where they lie far apart"
    return f", up to {count(most, 'round')} {until}"


def _show_left_out(console: Console, selection: Selection) -> None:
    reasons = Counter(item.why for item in selection.left_out)
    if not reasons:
        return
    table = Table("left out", "why", box=None, padding=(0, 2, 0, 2), header_style="bold")
    for why in list(reasons)[:LEFT_OUT_SHOWN]:
        ids = [item.id for item in selection.left_out if item.why == why]
        table.add_row(ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more", why)
    console.print()
    console.print(table)
