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

    end: End = Field(
        description="`answered`, `status`, `wrong_body`, `protocol`, `cut` (closed before the answer was whole), "
        "`closed` (nothing was asked on it), `reset`, `refused`, `open` or `not_kept`"
    )
    at_ms: float = Field(description="when")
    sent_ms: float | None = Field(description="when the request was sent; null where none was")
    first_byte_ms: float | None = Field(description="of the answer; null where none came")
    bytes: int = Field(description="of the answer")
    status: int | None = Field(description="of the answer; null where none came")


class Ending(Stored):
    """One server, started fresh and told to end."""

    outcome: str = Field(description="end of the request in flight, or `ignored`: the server went on serving")
    signal_error_us: float = Field(
        description="half the time between the readings of the clock before and after kill(2)"
    )
    received_ms: float | None = Field(description="when the server had read the request; null: not seen")
    slow: Fate = Field(description="the request in flight")
    queued: Fate | None = Field(
        default=None,
        description="a request that was sent 100 ms before the signal, when all places were taken; null: none was "
        "watched",
    )
    idle: Fate = Field(description="a kept connection on which nothing is asked any more")
    kept: Fate = Field(description="a kept connection that asks again 100 ms after the signal")
    new: Fate = Field(description="a connection opened 100 ms after the signal")
    exit_ms: float | None = Field(description="null where the server was killed after `kill_after_s`")
    exit_code: int | None = Field(description="of the root process; 128 + n for signal n")


class EndingCase(Stored):
    """All repetitions of one case."""

    case: str = Field(description="its name")
    signal: str = Field(description="what the server was sent")
    request: str = Field(description="path of the request in flight")
    flags: str = Field(description="what was added to the command; empty at its defaults")
    pid1: bool = Field(description="whether the server was process 1 of its container, without a shell before it")
    outcome: str = Field(description="the one outcome of all repetitions, or `mixed`")
    outcomes: dict[str, int] = Field(description="how often each")
    end_ms: float | None = Field(description="end of the request in flight, median")
    exit_ms: float | None = Field(
        description="end of the server, median of the repetitions in which it ended by itself; null: none"
    )
    exit_codes: dict[str, int] = Field(description="how often each; `killed` where it did not end by itself")
    signal_error_us: float = Field(description="how exactly the moment of the signal is known, the largest")
    places: int | None = Field(
        default=None,
        description="slow requests at the time of the signal, the one in flight among them: workers × threads; null: "
        "one alone",
    )
    queued: dict[str, int] | None = Field(
        default=None,
        description="ends of the queued request, how often each; `at_once`: answered before the signal, so that it "
        "never waited; null: none was watched",
    )
    idle: dict[str, int] = Field(description="ends of the idle connection, how often each")
    kept: dict[str, int] = Field(description="the same of the connection that asks again")
    new: dict[str, int] = Field(description="the same of the new connection")
    repetitions: list[Ending] = Field(description="each one")


class ShutdownSection(Stored):
    """Of the shutdown probe."""

    kill_after_s: float = Field(description="a server that still runs so long after the signal is killed")
    cases: list[EndingCase] = Field(description="one [EndingCase](#endingcase) for each signal, request and options")
