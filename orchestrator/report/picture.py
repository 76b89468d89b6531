"""SVG: the run in the view of its suite, else bars with intervals. The same records give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

from orchestrator.errors import SpecError
from orchestrator.evidence.model import Record, RunFile
from orchestrator.layout.text import listed, plain
from orchestrator.probes.probe import Panel
from orchestrator.probes.registry import PROBES, records_of
from orchestrator.report import pivot_picture as of_pivot
from orchestrator.report.document import Document, document
from orchestrator.report.order import Rank
from orchestrator.report.pivot import Pivot
from orchestrator.report.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SETTINGS: Any = {
    "svg.hashsalt": "appserver-matrix",  # else ids are random
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name may hold a $
    "font.family": "sans-serif",
    "font.size": 9,
    "hatch.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_WIDTH_INCH = 9.0
_LABEL_CHARACTERS = 120
_LOUD: dict[str, Any] = {"color": "#b00020", "fontweight": "bold"}
_PLAIN, _BASELINE, _OUTSIDE = "#4c78a8", "#54a24b", "#c8c8c8"


def render(run: RunFile, records: Sequence[Record]) -> bytes:
    """One panel per pivot, else one per table, else those of its probe. Raises SpecError where there is none."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    whole = document(run, records)
    panels: Sequence[Pivot | Table | Panel] = whole.pivots or whole.tables or _of_probes(records)
    if not panels:
        raise SpecError(
            f"run {run.id} of suite {run.suite} has nothing that is drawn: {_drawn()} are",
            next_step="look at it as a table: --format terminal, markdown or csv",
        )
    heights = [_height(panel) for panel in panels]
    with rc_context(_SETTINGS), catch_warnings():
        simplefilter("ignore", UserWarning)  # of glyphs that matplotlib's font lacks: the reader's own draws them
        figure = Figure(figsize=(_WIDTH_INCH, sum(heights) + 0.7), facecolor="white", layout="constrained")
        figure.suptitle(_headline(whole), **(_LOUD if whole.banner else {}))
        grid = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
        for axes, panel in zip(grid[:, 0], panels, strict=False):
            if isinstance(panel, Pivot):
                of_pivot.draw(axes, panel)
            elif isinstance(panel, Table):
                _bars(axes, panel)
            else:
                panel.draw(axes)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _headline(whole: Document) -> str:
    pivot = next(iter(whole.pivots), None)
    figure = of_pivot.told(pivot) if pivot else "requests per second, 95 % intervals"
    told = plain(f"{whole.suite}, run {whole.run}" + (f": {figure}" if whole.tables else ""))
    return f"{whole.banner}\n{told}".strip()


def _of_probes(records: Sequence[Record]) -> tuple[Panel, ...]:
    drawn = [(probe.panels, records_of(probe, records)) for probe in PROBES.values()]
    return tuple(panel for panels, own in drawn if panels for panel in panels(own))


def _drawn() -> str:
    """The probes whose records are drawn."""
    return listed([probe.name for probe in PROBES.values() if probe.settings.compares or probe.panels])


def _height(panel: Pivot | Table | Panel) -> float:
    """Inches."""
    return of_pivot.height(panel) if isinstance(panel, Pivot) else 1.0 + 0.27 * max(len(panel.rows), 3)


def _bars(axes: Axes, table: Table) -> None:
    shown = [row for row in table.rows if not row.void]
    for at, row in enumerate(shown):
        colour = _OUTSIDE if row.rank is None else _BASELINE if row.baseline else _PLAIN
        value = row.summary.rps.value
        axes.barh(at, value, color=colour, edgecolor="black", linewidth=0.4, hatch="///" if row.bound else None)
        _interval(axes, at, row)
    axes.set_yticks(range(len(shown)), [_label(row) for row in shown])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_title(
        plain(f"{table.title} (hatched, arrow: a lower bound; grey: outside the order)"), loc="left", fontsize=9
    )
    absent = [f"{row.name} (void)" for row in table.rows if row.void]
    absent += [f"{missing.name} ({missing.outcome})" for missing in table.missing]
    axes.set_xlabel(fill(plain("no figure: " + ", ".join(absent)), _LABEL_CHARACTERS) if absent else "", fontsize=7)


def _interval(axes: Axes, at: int, row: Row) -> None:
    estimate = row.summary.rps
    if estimate.low is not None and estimate.high is not None:
        axes.plot([estimate.low, estimate.high], [at, at], color="black", linewidth=1.2, marker="|", markersize=6)
    if row.bound:
        axes.plot(max(estimate.value, estimate.high or 0.0), at, color="black", marker=">", markersize=6, clip_on=False)


def _label(row: Row) -> str:
    rank = Rank(row.rank, row.rank_last) if row.rank and row.rank_last else ""
    return plain(f"{row.name}  {rank}")
