"""What the install probe leaves in a record: the report of the install step, and whether the server then serves."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.stored import Stored


class InstalledFile(Stored):
    """A distribution that the server brought beyond the frameworks."""

    name: str = Field(description="of the distribution")
    version: str = Field(description="of it")
    file: str = Field(description="the file that pip chose")
    tag: str = Field(description="compatibility tag of the wheel, downloaded or built here; empty where none was built")
    kind: Literal["wheel", "sdist"] = Field(description="`wheel` or `sdist`")
    compiled: bool = Field(description="whether its binaries were made here")
    bytes: int = Field(description="of the file")


class InstallError(Stored):
    kind: str = Field(description="what was missing; [images.md](images.md) lists the kinds and their cures")
    line: str = Field(description="the first meaningful line of the log, without URLs")


class InstallSection(Stored):
    """Of the install probe: the report of the install step, and whether what it installed starts and answers."""

    outcome: Literal["wheel", "compiled", "pure", "failed"] = Field(
        description="`wheel`, `compiled` (built here), `pure` (no native code) or `failed`"
    )
    packages: list[InstalledFile] = Field(description="what the server brought beyond the frameworks")
    system: list[str] = Field(description="system packages that were asked for")
    seconds: dict[str, float] = Field(description="of `system`, `download`, `build`, `install`")
    bytes_downloaded: int = Field(description="of all files")
    size_added: int = Field(description="bytes added to the environment; system packages are not counted")
    error: InstallError | None = Field(description="null, or what failed")
    python: str = Field(description="version")
    libc: str = Field(description="`glibc` with its version, or `musl`")
    arch: str = Field(description="of the machine")
    pip: str = Field(description="version")
    serves: bool | None = Field(
        default=None, description="whether it starts and answers right; null where nothing is installed"
    )
    ready_s: float | None = Field(
        default=None, description="from the first try to reach the server to its first right answer"
    )
    why_not: str = Field(default="", description="why it does not serve")
