"""What the shutdown probe leaves in a record: each ending of a server, and what they come to.

Moments (`_ms`) count from the signal, half way between the readings of the clock before and after kill(2).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.stored import Stored

End = Literal[
    "answered", "status", "wrong_body", "protocol", "cut", "closed", "reset", "refused", "open", "not_kept"
]  # fmt: skip


class Fate(Stored):
    """What a connection got. cut: closed before the answer was whole; closed: nothing was asked on it."""

    end: End
    at_ms: float
    sent_ms: float | None
    first_byte_ms: float | None
    bytes: int
    status: int | None


class Ending(Stored):
    """One server, started fresh and told to end."""

    outcome: str = Field(description="end of the request in flight, or `ignored`: the server went on serving")
    signal_error_us: float = Field(description="half the time between the clock's readings around kill(2)")
    received_ms: float | None = Field(description="when the server had read the request; null: not seen")
    slow: Fate = Field(description="the request in flight")
    queued: Fate | None = Field(
        default=None, description="a request sent 100 ms before the signal, all places being taken; null: not watched"
    )
    idle: Fate = Field(description="a kept connection on which nothing is asked any more")
    kept: Fate = Field(description="a kept connection that asks again 100 ms after the signal")
    new: Fate = Field(description="a connection opened 100 ms after the signal")
    exit_ms: float | None = Field(description="null: killed after `kill_after_s`")
    exit_code: int | None = Field(description="of the root process; 128 + n for signal n")


class EndingCase(Stored):
    """All repetitions of one case."""

    case: str
    signal: str
    request: str = Field(description="path of the request in flight")
    flags: str = Field(description="added to the command, '' at its defaults")
    pid1: bool = Field(description="the server was process 1 of its container, without a shell before it")
    outcome: str = Field(description="the one outcome of all repetitions, or `mixed`")
    outcomes: dict[str, int]
    end_ms: float | None = Field(description="median, of the request in flight")
    exit_ms: float | None = Field(description="median, of the repetitions in which it ended by itself")
    exit_codes: dict[str, int] = Field(description="how often each; `killed` where it did not end by itself")
    signal_error_us: float = Field(description="the largest")
    places: int | None = Field(default=None, description="slow requests at the signal: workers × threads; null: one")
    queued: dict[str, int] | None = Field(
        default=None, description="ends, `at_once`: answered before the signal, so never queued; null: not watched"
    )
    idle: dict[str, int]
    kept: dict[str, int]
    new: dict[str, int]
    repetitions: list[Ending]


class ShutdownSection(Stored):
    """Of the shutdown probe."""

    kill_after_s: float = Field(description="a server that still runs so long after the signal is killed")
    cases: list[EndingCase]
