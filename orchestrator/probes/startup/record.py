"""What the startup probe leaves in a record: every fresh start, and the spread of each figure over them."""

from __future__ import annotations

from pydantic import Field

from orchestrator.stored import Stored


class Start(Stored):
    """One fresh start; times count from the exec of the server's command."""

    accepted_ms: float = Field(description="first connection made")
    answered_ms: float = Field(description="first right answer")
    first_us: float = Field(description="latency of that answer")
    tenth_us: float = Field(description="latency of the tenth")
    cpu_ms: float = Field(description="CPU of the server's living processes, ten answers included")
    rss_bytes: int = Field(description="of all processes, idle after ten answers")
    pss_bytes: int | None
    processes: int


class Spread(Stored):
    """Of all starts."""

    low: float
    median: float
    high: float


class StartupSection(Stored):
    """Of the startup probe."""

    starts: list[Start]
    accepted_ms: Spread
    answered_ms: Spread
    first_us: Spread
    tenth_us: Spread
    cpu_ms: Spread
    rss_bytes: Spread
    pss_bytes: Spread | None
    processes: Spread
