"""`matrix doctor` on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from orchestrator.tools.doctor_running import Finding


def findings_table(found: Sequence[Finding]) -> Table:
    """One row per finding, the cure under it."""
    table = Table(box=None, pad_edge=False, show_header=False)
    styles = {"ok": "green", "warn": "yellow", "bad": "bold red"}
    for finding in found:
        text = Text(finding.text)
        if finding.cure:
            text.append(f"\n-> {finding.cure}", style="dim")
        table.add_row(Text(finding.severity, style=styles[finding.severity]), Text(finding.check), text)
    return table
