"""What people see while a run goes on: a live line on a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from orchestrator.layout.text import count
from orchestrator.probes.events import CellDone, Emit, Event, ImageReady, LaunchFailed, ServersUp, SliceDone, Told

PLAIN_EVERY_S = 10.0
REFRESH_HZ = 2
"""Refreshing costs CPU that the machine should spend on the server: twice a second is smooth enough."""


@contextmanager
def shown(console: Console) -> Iterator[Emit]:
    """Gives the function that takes events."""
    if console.is_terminal:
        with _bars(console) as progress:
            yield _Live(console, progress).take
    else:
        yield _Plain(console).take


def _bars(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}"),
    )
    return Progress(*columns, console=console, refresh_per_second=REFRESH_HZ, transient=True)


class _Live:
    """One bar for images, one for slices."""

    def __init__(self, console: Console, progress: Progress) -> None:
        self._console = console
        self._progress = progress
        self._tasks: dict[str, object] = {}

    def take(self, event: Event) -> None:
        match event:
            case Told(text):
                self._console.print(text, highlight=False, markup=False)
            case ImageReady(id_, ok, text, done, total):
                if not ok:
                    self._console.print(f"{id_}: {text}", highlight=False, markup=False)
                self._bar("images", done, total, id_)
            case ServersUp(round_, up, total, rounds):
                self._bar("slices", None, None, f"round {round_} of {rounds}: {up} of {total} servers up")
            case LaunchFailed():
                self._console.print(_failed(event), highlight=False, markup=False)
            case SliceDone(cell, rps, _, done, total):
                self._bar("slices", done, total, f"{cell} {_rps(rps)}")
            case CellDone(cell, outcome, done, total):
                self._bar("cells", done, total, f"{cell} {outcome}")

    def _bar(self, name: str, done: int | None, total: int | None, text: str) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total, text=text)
        self._progress.update(self._tasks[name], completed=done, total=total, text=text)  # type: ignore[arg-type]


class _Plain:
    """Lines for a log: each image, each round, and a sign of life in between."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began: float | None = None
        self._said = 0.0

    def take(self, event: Event) -> None:
        match event:
            case Told(text):
                self._say(text)
            case ImageReady(id_, ok, text, done, total):
                self._say(f"image {done}/{total} {id_}: {text if ok else 'FAILED: ' + text}")
            case ServersUp(round_, up, total, rounds, failed):
                if up + failed == total:
                    self._say(f"round {round_} of {rounds}: {_servers(up, total)} up")
            case LaunchFailed():
                self._say(_failed(event))
            case SliceDone(cell, rps, _, done, total):
                count = f"{done}/{total}, {self._left(done, total)} left" if total else f"{done}"
                if done == total or time.monotonic() - self._said > PLAIN_EVERY_S:
                    self._say(f"slice {count}: {cell} {_rps(rps)}")
            case CellDone(cell, outcome, done, total):
                self._say(f"cell {done}/{total}, {self._left(done, total)} left: {cell} {outcome}")

    def _left(self, done: int, total: int) -> str:
        """From the pace since the first one was done: building images tells nothing about it."""
        now = time.monotonic()
        self._began = self._began or now
        return f"{(now - self._began) / max(1, done - 1) * (total - done):.0f} s" if done > 1 else "?"

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def _servers(up: int, total: int) -> str:
    return count(total, "server") if up == total else f"{up} of {total} servers"


def _failed(event: LaunchFailed) -> str:
    what = "not measured" if event.given_up else f"not measured in round {event.round}"
    return f"{event.launch}: {what}: {event.reason}"


def _rps(rps: float | None) -> str:
    return "no figure" if rps is None else f"{rps:,.0f} rps"
