"""What happens during a run, as values that the CLI shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Told:
    """A line for people."""

    text: str


@dataclass(frozen=True)
class ImageReady:
    id: str
    ok: bool
    text: str
    done: int
    total: int


@dataclass(frozen=True)
class ServersUp:
    """`up` of `total` servers answer rightly, `failed` of them do not and will not in this round.

    `rounds` is how many there will be: "4", "30 at most"; measuring a round cannot know.
    """

    round: int
    up: int
    total: int
    rounds: str = ""
    failed: int = 0


@dataclass(frozen=True)
class LaunchFailed:
    """A server that is not measured in this round; after the first round, it is not started again (`given_up`)."""

    round: int
    launch: str
    reason: str
    given_up: bool


@dataclass(frozen=True)
class SliceDone:
    """`planned_s` is the time of warm-up and stretch; `done` of `total` slices of the round.

    As the pipeline passes it on: of the whole run, and None where nobody knows yet how many that has.
    """

    cell: str
    rps: float | None
    planned_s: float
    done: int
    total: int | None


@dataclass(frozen=True)
class CellDone:
    """A probe that takes one cell at a time has finished one."""

    cell: str
    outcome: str
    done: int
    total: int


Event = Told | ImageReady | ServersUp | LaunchFailed | SliceDone | CellDone
Emit = Callable[[Event], None]
