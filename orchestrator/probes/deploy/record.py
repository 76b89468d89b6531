"""What the deploy probe leaves in a record: what each disturbance under steady load cost."""

from __future__ import annotations

from pydantic import Field

from orchestrator.stored import Stored


class Disturbed(Stored):
    """One disturbance under steady load."""

    requests: int = Field(description="all that were due")
    lost: dict[str, int] = Field(description="by kind, as the load generator names errors")
    added_ms: float = Field(
        description="latency: the greatest median of 100 ms after the event, less the median before it"
    )
    normal_after_s: float | None = Field(
        description="until no request is lost and none takes longer than before; null where that was not reached"
    )
    slow: str | None = Field(
        default=None,
        description="of `stall`: `answered`, or how the request that took longer than a worker may was lost",
    )


class DeployCase(Stored):
    case: str = Field(description="the disturbance: `rolling`, `late`, `reload`, `kill`, `stall`")
    unable: str = Field(description="why the server cannot be disturbed so; empty where it can")
    repetitions: list[Disturbed] = Field(description="each one")


class DeploySection(Stored):
    """Of the deploy probe."""

    rate: float = Field(description="requests a second, at fixed times")
    request: str = Field(description="their path")
    cases: list[DeployCase] = Field(description="one [DeployCase](#deploycase) for each disturbance")
