"""SVG: bars with intervals, or lines over connections where they vary. The same records give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import cycle
from textwrap import fill
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

from orchestrator.records.model import Estimate, Record, RunFile
from orchestrator.report.document import Document, document
from orchestrator.report.lifecycle import timelines
from orchestrator.report.pivot import Pivot, PivotCell, PivotRow
from orchestrator.report.table import Row, Table
from orchestrator.report.text import plain
from orchestrator.report.timeline import Timeline, draw

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
_COLOURS = (
    "#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d", "#eeca3b", "#ff9da6", "#7f7f7f",
)  # fmt: skip
_MARKERS = "osD^vPX"
_LINES = ("-", "--", "-.")


def render(run: RunFile, records: Sequence[Record]) -> bytes:
    """One panel per pivot where connections vary, else one per table, else timelines of shutdowns."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    whole = document(run, records)
    panels: Sequence[Pivot | Table | Timeline] = whole.pivots or whole.tables or timelines(records)
    heights = [_height(panel) for panel in panels] or [1.0]
    with rc_context(_SETTINGS), catch_warnings():
        simplefilter("ignore", UserWarning)  # of glyphs that matplotlib's font lacks: the reader's own draws them
        figure = Figure(figsize=(_WIDTH_INCH, sum(heights) + 0.7), facecolor="white", layout="constrained")
        figure.suptitle(_headline(whole), **(_LOUD if whole.banner else {}))
        grid = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
        for axes, panel in zip(grid[:, 0], panels, strict=False):
            if isinstance(panel, Pivot):
                _lines(axes, panel)
            elif isinstance(panel, Timeline):
                draw(axes, panel)
            else:
                _bars(axes, panel)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _headline(whole: Document) -> str:
    figures = ": requests per second, 95 % intervals" if whole.tables else ""
    told = plain(f"{whole.suite}, run {whole.run}{figures}")
    return f"{whole.banner}\n{told}".strip()


def _height(panel: Pivot | Table | Timeline) -> float:
    """Inches."""
    return 1.0 + 0.27 * max(len(panel.rows), 12 if isinstance(panel, Pivot) else 3)


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
    return plain(f"{row.name}  {row.texts[0]}")


def _lines(axes: Axes, pivot: Pivot) -> None:
    looks = cycle((line, colour) for line in _LINES for colour in _COLOURS)
    for row, (line, colour), marker in zip(pivot.rows, looks, cycle(_MARKERS), strict=False):
        _line(axes, pivot, row, {"linestyle": line, "color": colour, "marker": marker})
    axes.set_xscale("log", base=2)
    axes.set_xticks(pivot.connections, [str(number) for number in pivot.connections])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("connections")
    axes.set_title(
        plain(f"{pivot.title} (hollow triangle: a lower bound; cross: outside the order)"), loc="left", fontsize=9
    )
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, frameon=False)


def _line(axes: Axes, pivot: Pivot, row: PivotRow, look: dict[str, Any]) -> None:
    found = zip(pivot.connections, row.cells, strict=True)
    points = [(x, cell.summary.rps, cell) for x, cell in found if cell and cell.summary and not cell.void]
    if not points:
        return
    axes.plot(
        [x for x, _, _ in points], [rps.value for _, rps, _ in points], label=plain(row.name), markersize=4, **look
    )
    for x, rps, cell in points:
        _point(axes, x, rps, cell, look["color"])


def _point(axes: Axes, x: int, rps: Estimate, cell: PivotCell, colour: str) -> None:
    if rps.low is not None and rps.high is not None:
        axes.plot([x, x], [rps.low, rps.high], color=colour, linewidth=0.8)
    if cell.outside or cell.bound:
        marker = "x" if cell.outside else "^"
        edge = "black" if cell.outside else colour
        axes.plot(x, rps.value, color="white", markeredgecolor=edge, marker=marker, markersize=7, zorder=5)
