"""A pivot as a picture: lines over an axis of numbers, bars side by side for one of words."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from orchestrator.figures import Estimate
from orchestrator.layout.text import plain
from orchestrator.report.axes import WORDS
from orchestrator.report.measures import MEASURES
from orchestrator.report.pivot import Pivot, PivotCell, PivotRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (
    "#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d", "#eeca3b", "#ff9da6", "#7f7f7f",
)  # fmt: skip
_MARKERS = "osD^vPX"
_LINES = ("-", "--", "-.")
_BAR_INCH, _LINE_INCH = 0.16, 0.27
_NUMBERS = ("connections", "workers", "threads", "open")
_TRIANGLE, _CROSS = "hollow triangle: a lower bound", "cross: outside the order"
Point = tuple[int, Estimate, PivotCell]


def height(pivot: Pivot) -> float:
    """Inches."""
    if _over_numbers(pivot):
        return 1.0 + _LINE_INCH * max(len(pivot.rows), 12)
    return 1.2 + _BAR_INCH * max(len(pivot.rows) * (len(pivot.values) + 1), 8)


def draw(axes: Axes, pivot: Pivot) -> None:
    """The one figure of the pivot that is drawn, with its intervals."""
    if not _over_numbers(pivot):
        _bars(axes, pivot)
    elif pivot.across == "open":
        _lines(axes, pivot)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        ticks = [(number, heading) for number, heading in zip(_numbers(pivot), pivot.headings, strict=True) if number]
        axes.set_xticks([number for number, _ in ticks], [heading for _, heading in ticks])
        _titled(axes, pivot, "cross: overloaded, or outside the order")
        axes.set_xlabel("requests that come in, in percent of what the closed loop answers")
    else:
        _lines(axes, pivot)
        axes.set_xscale("log", base=2)
        axes.set_xticks(_numbers(pivot), list(pivot.headings))
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_xlabel(WORDS[pivot.across].by)
        _titled(axes, pivot, f"{_TRIANGLE}; {_CROSS}")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, frameon=False)


def _over_numbers(pivot: Pivot) -> bool:
    return pivot.across in _NUMBERS and (pivot.across == "open" or all(pivot.values))


def _numbers(pivot: Pivot) -> list[int]:
    return [int(value) for value in pivot.values if value is not None]


def _titled(axes: Axes, pivot: Pivot, marks: str) -> None:
    axes.set_title(plain(f"{pivot.title} ({marks})"), loc="left", fontsize=9)
    if pivot.drawn != "rps":
        axes.set_ylabel(plain(_unit(pivot)))


def told(pivot: Pivot) -> str:
    """What is drawn, for a headline."""
    cells = [cell for row in pivot.rows for cell in row.cells if cell and cell.drawn]
    known = any(cell.drawn and cell.drawn.low is not None for cell in cells)
    figure = "requests per second" if pivot.drawn == "rps" else _unit(pivot)
    return f"{figure}, 95 % intervals" if known or pivot.drawn == "rps" else figure


def _unit(pivot: Pivot) -> str:
    return MEASURES[pivot.drawn].column.format(base=pivot.base)


def _bound(pivot: Pivot, cell: PivotCell) -> bool:
    """Whether the load generator limited what is drawn."""
    return cell.bound and pivot.drawn in ("rps", "ratio")


def _lines(axes: Axes, pivot: Pivot) -> None:
    looks = cycle((line, colour) for line in _LINES for colour in COLOURS)
    for row, (line, colour), marker in zip(pivot.rows, looks, cycle(_MARKERS), strict=False):
        _line(axes, pivot, row, {"linestyle": line, "color": colour, "marker": marker})


def _points(pivot: Pivot, row: PivotRow) -> list[Point]:
    found = zip(_numbers(pivot), row.cells, strict=True)
    return [(x, cell.drawn, cell) for x, cell in found if cell and cell.drawn]


def _line(axes: Axes, pivot: Pivot, row: PivotRow, look: dict[str, Any]) -> None:
    points = _points(pivot, row)
    if not points:
        return
    axes.plot(
        [x for x, _, _ in points],
        [found.value for _, found, _ in points],
        label=plain(row.name),
        markersize=4,
        **look,
    )
    for x, found, cell in points:
        if found.low is not None and found.high is not None:
            axes.plot([x, x], [found.low, found.high], color=look["color"], linewidth=0.8)
        if marker := "x" if cell.outside or cell.overloaded else "^" if _bound(pivot, cell) else "":
            edge = "black" if marker == "x" else look["color"]
            axes.plot(x, found.value, color="white", markeredgecolor=edge, marker=marker, markersize=7, zorder=5)


def _bars(axes: Axes, pivot: Pivot) -> None:
    """One group of bars for each row, one colour for each value."""
    group = len(pivot.values) + 1
    for at, heading in enumerate(pivot.headings):
        cells = [(number, row.cells[at]) for number, row in enumerate(pivot.rows)]
        bars = [(number * group + at, cell.drawn, cell) for number, cell in cells if cell and cell.drawn]
        colour = COLOURS[at % len(COLOURS)]
        axes.barh(
            [y for y, _, _ in bars], [found.value for _, found, _ in bars], height=0.9, color=colour,
            edgecolor="black", linewidth=0.4, label=plain(heading),
        )  # fmt: skip
        for y, found, cell in bars:
            _end(axes, y, found, "x" if cell.outside else ">" if _bound(pivot, cell) else "")
    centres = [number * group + (group - 2) / 2 for number in range(len(pivot.rows))]
    axes.set_yticks(centres, [plain(row.name) for row in pivot.rows])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel(plain(_unit(pivot)))
    axes.set_title(plain(f"{pivot.title} (arrow: a lower bound; {_CROSS})"), loc="left", fontsize=9)


def _end(axes: Axes, y: float, found: Estimate, marker: str) -> None:
    """The interval of a bar, and what its end is worth."""
    if found.low is not None and found.high is not None:
        axes.plot([found.low, found.high], [y, y], color="black", linewidth=0.8)
    if marker:
        axes.plot(found.value, y, color="black", marker=marker, markersize=5, clip_on=False)
