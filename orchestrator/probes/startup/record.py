"""What the startup probe leaves in a record: every fresh start, and the spread of each figure over them."""

from __future__ import annotations

from pydantic import Field

from orchestrator.stored import Stored


class Start(Stored):
    """One fresh start; times count from the exec of the server's command."""

    accepted_ms: float = Field(description="when a connection was first made")
    answered_ms: float = Field(description="when the first right answer was there")
    first_us: float = Field(description="latency of that answer")
    tenth_us: float = Field(description="latency of the tenth")
    cpu_ms: float = Field(description="CPU of the processes that live, ten answers included")
    rss_bytes: int = Field(description="of all processes, idle after ten answers")
    pss_bytes: int | None = Field(description="the same with shared pages shared out; null where it may not be read")
    processes: int = Field(description="how many")


class Spread(Stored):
    """Of all starts."""

    low: float = Field(description="the least")
    median: float = Field(description="the middle")
    high: float = Field(description="the greatest")


class StartupSection(Stored):
    """Of the startup probe."""

    starts: list[Start] = Field(description="each one")
    accepted_ms: Spread
    answered_ms: Spread = Field(description="the same")
    first_us: Spread = Field(description="the same")
    tenth_us: Spread = Field(description="the same")
    cpu_ms: Spread = Field(description="the same")
    rss_bytes: Spread = Field(description="the same")
    pss_bytes: Spread | None = Field(description="the same; null where it may not be read")
    processes: Spread = Field(description="the same")
