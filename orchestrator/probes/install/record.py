"""What the install probe leaves in a record: the report of the install step, and whether the server then serves."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.stored import Stored


class InstalledFile(Stored):
    """A distribution that the server brought beyond the frameworks."""

    name: str
    version: str
    file: str = Field(description="the file that pip chose")
    tag: str = Field(description="compatibility tag of the wheel, downloaded or built here; '' where none was built")
    kind: Literal["wheel", "sdist"]
    compiled: bool = Field(description="its binaries were made here")
    bytes: int


class InstallError(Stored):
    kind: str = Field(description="what was missing: docs/images.md lists the kinds and their cures")
    line: str = Field(description="the first meaningful line of the log, without URLs")


class InstallSection(Stored):
    """Of the install probe: the report of the install step, and whether what it installed starts and answers."""

    outcome: Literal["wheel", "compiled", "pure", "failed"]
    packages: list[InstalledFile]
    system: list[str] = Field(description="system packages that were asked for")
    seconds: dict[str, float] = Field(description="system, download, build, install")
    bytes_downloaded: int
    size_added: int = Field(description="bytes added to the environment; system packages are not counted")
    error: InstallError | None
    python: str
    libc: str
    arch: str
    pip: str
    serves: bool | None = Field(default=None, description="starts and answers right; null where nothing is installed")
    ready_s: float | None = None
    why_not: str = Field(default="", description="why it does not serve")
