"""What the deploy probe leaves in a record: what each disturbance under steady load cost."""

from __future__ import annotations

from pydantic import Field

from orchestrator.stored import Stored


class Disturbed(Stored):
    """One disturbance under steady load."""

    requests: int
    lost: dict[str, int] = Field(description="by kind, as the load generator names errors")
    added_ms: float = Field(description="latency: greatest median of 100 ms after the event, less the median before it")
    normal_after_s: float | None = Field(description="until no loss and no longer latency than before; null: not seen")
    slow: str | None = Field(default=None, description="of `stall`: end of the request over the timeout")


class DeployCase(Stored):
    case: str
    unable: str = Field(description="why the server cannot be disturbed so; '' where it can")
    repetitions: list[Disturbed]


class DeploySection(Stored):
    """Of the deploy probe."""

    rate: float = Field(description="requests a second, at fixed times")
    request: str
    cases: list[DeployCase]
