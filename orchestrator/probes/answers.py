"""What the load generator's agent answers about single requests, and in words how an answer differs from the right one.

Parsed once, here; fields that are not known are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, ValidationError

from orchestrator.errors import LoadFailed

SHOWN = 80
"""Bytes of a body that a sentence shows."""
TELLING_HEADERS = ("content-encoding", "location", "retry-after")


class Told(BaseModel):
    """The base of what an agent tells."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Problem(Told):
    """Why there is no answer: `detail` of a server's, `message` of the agent's own."""

    kind: str = ""
    detail: str = ""
    message: str = ""

    def __str__(self) -> str:
        return self.detail or self.message or self.kind or "no answer"


class Answered(Told):
    """A server's answer, or the error in its place. `connection_reused`: it came over the connection of the last."""

    status: int | None = None
    reason: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: Base64Bytes = b""
    connection_reused: bool = False
    error: Problem | None = None

    def __str__(self) -> str:
        """Status, the headers that explain it, and the first bytes of the body."""
        if self.error or self.status is None:
            return str(self.error or "no answer")
        status = f"status {self.status} {self.reason or ''}".strip()
        return f"{status}, {self.telling_headers()}body {shown(self.body)}"

    def telling_headers(self) -> str:
        return "".join(f"{name.title()}: {value}, " for name, value in self.headers if name.lower() in TELLING_HEADERS)


class Fetched(Told):
    """Of `fetch`."""

    answers: tuple[Answered, ...] = Field(min_length=1)


class Waited(Told):
    """Of `wait`: `seconds` that it took; where `ok` is false, the last thing that came."""

    ok: bool
    seconds: float
    answer: Answered | None = None
    error: Problem | None = None


class Begun(Told):
    """Of `startup`: on the kernel's clock, the first connection and the first answer; and ten answers' times."""

    accepted_ns: int
    answered_ns: int
    latencies_us: tuple[float, ...] = Field(min_length=10)


class Sample(Told):
    """CPU and memory of a process tree. `wanting`: threads that run, or wait for a CPU."""

    cpu_s: float
    processes: int
    wanting: int
    rss_bytes: int | None = None
    pss_bytes: int | None = None


class Sampled(Told):
    """Of `sample`; none where the processes cannot be read."""

    sample: Sample | None = None


Kind = TypeVar("Kind", bound=BaseModel)


def parsed(kind: type[Kind], answer: Mapping[str, Any], op: str) -> Kind:
    """The answer as what it should be. Raises LoadFailed with the agent's own error, or with the first wrong field."""
    try:
        return kind.model_validate(answer)
    except ValidationError as error:
        own = answer.get("error")
        said = own.get("message") if isinstance(own, Mapping) else None
        wrong = said or f"the load generator's answer is not what it should be: {first_mistake(error)}"
        raise LoadFailed(f"{op}: {wrong}") from error


def first_mistake(error: ValidationError) -> str:
    """Where the first mistake is and what is wrong with it."""
    found = error.errors(include_url=False)[0]
    where = ".".join(map(str, found["loc"]))
    return f"{where}: {found['msg']}" if where else str(found["msg"])


def shown(body: bytes) -> str:
    """The first bytes of a body, and how many there are where those are not all."""
    return repr(body) if len(body) <= SHOWN else f"{body[:SHOWN]!r}… ({len(body)} bytes)"


def differing(got: bytes, wanted: bytes) -> str:
    """How a body differs from the right one: both, or both from where they part."""
    if max(len(got), len(wanted)) <= SHOWN:
        return f"body {got!r}, not {wanted!r}"
    at = next((at for at, pair in enumerate(zip(got, wanted, strict=False)) if pair[0] != pair[1]),
              min(len(got), len(wanted)))  # fmt: skip
    return (
        f"body of {len(got)} bytes, not {len(wanted)}; from byte {at} on "
        f"{got[at : at + SHOWN // 2]!r}, not {wanted[at : at + SHOWN // 2]!r}"
    )
