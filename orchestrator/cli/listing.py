"""`matrix list`: the cells of a suite, what is left out and why, and how long it would take."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.console import Console
from rich.table import Table

from orchestrator.cells.expand import Selection
from orchestrator.images.plan import images_of
from orchestrator.spec.models import Matrix

LEFT_OUT_SHOWN = 12


def listing_json(selection: Selection) -> dict[str, Any]:
    """The same as one document; `schema` tells its form."""
    return {
        "schema": "appserver-matrix/list/1",
        "suite": selection.suite,
        "baseline": selection.baseline,
        "measuring_s": round(selection.seconds, 1),
        "schedule": selection.schedule.model_dump(),
        "cells": [
            {"id": cell.id, "image": cell.image.id, "command": cell.variant.run, "options": cell.variant.options}
            for cell in selection.cells
        ],
        "left_out": [{"id": item.id, "why": item.why} for item in selection.left_out],
    }


def show_listing(console: Console, matrix: Matrix, selection: Selection) -> None:
    """Cells in the order of the file; then what is left out, grouped by its reason."""
    about = matrix.suites[selection.suite].about
    console.print(f"[bold]{selection.suite}[/]: {about}" if about else f"[bold]{selection.suite}[/]")
    for cell in selection.cells:
        mark = "  [dim](baseline)[/]" if cell.variant.name == selection.baseline else ""
        console.print(f"  {cell.id}{mark}", soft_wrap=True)
    _show_left_out(console, selection)
    images = images_of(matrix, selection.cells)
    console.print(f"\n{len(selection.cells)} cells in {len(images)} images; {_duration(selection)}")
    others = ", ".join(name for name in matrix.suites if name != selection.suite)
    console.print(f"[dim]Other suites: {others}. Measure this one: matrix run {selection.suite}[/]")


def _duration(selection: Selection) -> str:
    plan = selection.schedule
    if selection.probe != "load":
        return f"the probe {selection.probe} takes them one by one."
    return (
        f"{plan.rounds} rounds of {plan.slices} slices of {plan.slice_s:g} s: about {selection.seconds / 60:.1f} "
        "minutes of measuring, building the images aside."
    )


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
