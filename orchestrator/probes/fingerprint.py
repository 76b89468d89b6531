"""What an app tells of the server that runs it: the value of GET /fingerprint (docs/apps.md), typed once, here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.errors import CheckFailed
from orchestrator.probes.answers import first_mistake, shown


class Fingerprint(BaseModel):
    """GET /fingerprint. Whatever could not be found out is None; keys that are not known here are kept.

    `packages`: the distributions that the server comes from, or may come from.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    server: str | None = None
    server_version: str | None = None
    packages: tuple[str, ...] = ()
    interface: str | None = None
    loop: str | None = None
    parser: str | None = None
    worker_class: str | None = None
    python: str | None = None
    implementation: str | None = None
    gil: bool | None = None
    libc: str | None = None
    pid: int | None = None
    ppid: int | None = None
    threads: int | None = None
    argv: tuple[str, ...] = ()
    versions: Mapping[str, str] = {}

    def told(self) -> dict[str, Any]:
        """As the app told it."""
        return self.model_dump(mode="json", exclude_unset=True)


def read_fingerprint(body: bytes) -> Fingerprint:
    """Raises CheckFailed, which says what is wrong with it, for a body that is no fingerprint."""
    try:
        return Fingerprint.model_validate_json(body)
    except ValidationError as error:
        raise CheckFailed(
            f"/fingerprint: {first_mistake(error)} in body {shown(body)}; docs/apps.md says what an app tells there"
        ) from error
