"""The ends of servers over time: request, signal, answer or cut, exit; as a line of text and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.layout.text import plain
from orchestrator.probes.shutdown.record import Ending

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 60
SCALE_MS = (-250.0, 2_750.0)
LETTERS = {"answered": "A", "cut": "C", "reset": "R"}
LEGEND = (
    f"One column is {(SCALE_MS[1] - SCALE_MS[0]) / WIDTH:.0f} ms, from {SCALE_MS[0]:.0f} to {SCALE_MS[1]:.0f} ms. "
    "r request, S signal, A answered, C cut, R reset, O another end of the request, E exit of the server, > later."
)
_KEPT, _DROPPED, _SERVES = "#54a24b", "#e45756", "#c8c8c8"


@dataclass(frozen=True)
class Timeline:
    """One panel of a picture: what happened to each server, by name, in one of its endings."""

    title: str
    rows: tuple[tuple[str, Ending], ...]

    def draw(self, axes: Axes) -> None:
        """A bar from the request to its end, then a thin line to the server's exit (×)."""
        draw(axes, self)


def line(ending: Ending) -> str:
    """`r----S-----A--E`; where two marks fall together, the request's end is shown."""
    marks = ["·"] * (WIDTH + 1)  # blanks would vanish in Markdown
    start, end = _column(ending.slow.sent_ms), _column(ending.slow.at_ms)
    end += end == _column(0) and ending.slow.at_ms > 0  # beside the signal, not over it
    marks[start:end] = "-" * (end - start)
    marks[start], marks[_column(0)] = "r", "S"
    if ending.exit_ms is not None:
        marks[_column(ending.exit_ms)] = "E" if ending.exit_ms <= SCALE_MS[1] else ">"
    marks[end] = LETTERS.get(ending.slow.end, "O")
    return "".join(marks)


def _column(ms: float | None) -> int:
    low, high = SCALE_MS
    return max(0, min(WIDTH, round(((low if ms is None else ms) - low) / (high - low) * WIDTH)))


def draw(axes: Axes, timeline: Timeline) -> None:
    """A bar from the request to its end, then a thin line to the server's exit (×)."""
    for at, (_, ending) in enumerate(timeline.rows):
        start, end = ending.slow.sent_ms or SCALE_MS[0], ending.slow.at_ms
        colour = _SERVES if ending.outcome == "ignored" else _KEPT if ending.outcome == "answered" else _DROPPED
        axes.barh(at, end - start, left=start, height=0.55, color=colour, edgecolor="black", linewidth=0.4)
        if ending.exit_ms is not None:
            axes.plot([end, ending.exit_ms], [at, at], color="black", linewidth=0.8)
            axes.plot(ending.exit_ms, at, color="black", marker="x", markersize=5)
    axes.axvline(0, color="black", linestyle="--", linewidth=0.8)
    axes.set_yticks(range(len(timeline.rows)), [plain(name) for name, _ in timeline.rows])
    axes.invert_yaxis()
    axes.set_xlabel(
        "ms after the signal. Bar: the request in flight (green: answered each time, red: dropped, grey: the server "
        "served on); ×: exit of the server",
        fontsize=7,
    )
    axes.set_title(plain(timeline.title), loc="left", fontsize=9)
