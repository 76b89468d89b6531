"""Which wheels a package index has, from its simple JSON API (PEP 691, project detail). Pure: no network here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

PYTHONS = {"cp313": (3, 13), "cp314": (3, 14), "cp314t": (3, 14)}
"""ABI by Python version; `t` stands for the build without the GIL."""
TARGETS = (("glibc", "x86_64"), ("glibc", "aarch64"), ("musl", "x86_64"), ("musl", "aarch64"))
_NEWEST_GLIBC, _NEWEST_MUSL = 60, 5
_OLD_NAMES = ("manylinux2014", "manylinux2010", "manylinux1")

How = Literal["", "pure", "py3", "abi3", "cp313", "cp314", "cp314t"]
"""Why pip would take a wheel: pure Python, any CPython 3, its stable ABI, one ABI; "" where there is none to take."""


@dataclass(frozen=True)
class File:
    """A file of the index that has a valid name. `tags` is empty for an sdist."""

    name: str
    version: Version
    tags: frozenset[Tag]
    yanked: bool


@dataclass(frozen=True)
class Coverage:
    """What one release offers: by (libc, architecture), by ABI of PYTHONS."""

    version: Version
    wheels: Mapping[tuple[str, str], Mapping[str, How]]
    sdist: bool

    def labels(self, libc: str, architecture: str) -> str:
        """cp313 cp314, or pure, or abi3 …; "" where pip finds no wheel."""
        return " ".join(dict.fromkeys(filter(None, self.wheels[libc, architecture].values())))


def parse_project(text: str) -> tuple[File, ...]:
    """The files of a project. Those without a valid name are passed over, as installers do.

    Raises ValueError where the answer is no project of version 1 of the API.
    """
    found = json.loads(text)
    if not isinstance(found, dict) or not isinstance(found.get("files"), list):
        raise ValueError("the answer lists no files")
    meta = found.get("meta")
    version = str(meta.get("api-version")) if isinstance(meta, dict) else "none"
    if version.partition(".")[0] != "1":
        raise ValueError(f"the answer is of API version {version}, not 1")
    return tuple(file for entry in found["files"] if (file := _file(entry)) is not None)


def _file(entry: Any) -> File | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("filename"), str):
        return None
    name, yanked = entry["filename"], bool(entry.get("yanked"))
    try:
        if name.endswith(".whl"):
            _, version, _, tags = parse_wheel_filename(name)
            return File(name, version, tags, yanked)
        return File(name, parse_sdist_filename(name)[1], frozenset(), yanked)
    except ValueError:  # both kinds of invalid names, and numbers beyond all measure
        return None


def release(files: Iterable[File], pinned: str = "") -> Version | None:
    """The pinned release, or the newest one that is neither a pre-release nor withdrawn; None where it is not there."""
    if pinned:
        return next((file.version for file in files if file.version == Version(pinned)), None)
    return max((file.version for file in files if not file.yanked and not file.version.is_prerelease), default=None)


def coverage(files: Iterable[File], version: Version) -> Coverage:
    """Which Python finds a wheel of this release where, as pip would decide it (PEP 425, 600, 656)."""
    of_release = [file for file in files if file.version == version]
    tags = {tag for file in of_release for tag in file.tags}
    wheels = {target: {abi: _how(tags & _accepted(abi, *target)) for abi in PYTHONS} for target in TARGETS}
    return Coverage(version, wheels, any(not file.tags for file in of_release))


def _how(accepted: set[Tag]) -> How:
    """The most specific reason: a wheel of this very ABI comes before the stable ABI, before any Python."""
    order: tuple[How, ...] = ("cp313", "cp314", "cp314t", "abi3", "py3", "pure")
    found = {_kind(tag) for tag in accepted}
    return next((kind for kind in order if kind in found), "")


def _kind(tag: Tag) -> str:
    if tag.abi == "none":
        return "pure" if tag.platform == "any" else "py3"
    return tag.abi


@cache
def _accepted(abi: str, libc: str, architecture: str) -> frozenset[Tag]:
    """The tags that pip takes on a new Linux of this kind."""
    version, platforms = PYTHONS[abi], list(_platforms(libc, architecture))
    return frozenset(
        (*cpython_tags(version, [abi], platforms), *compatible_tags(version, f"cp{version[0]}{version[1]}", platforms))
    )


def _platforms(libc: str, architecture: str) -> Iterable[str]:
    if libc == "musl":
        return [f"musllinux_1_{minor}_{architecture}" for minor in range(_NEWEST_MUSL, -1, -1)]
    new = [f"manylinux_2_{minor}_{architecture}" for minor in range(_NEWEST_GLIBC, 4, -1)]
    return [*new, *(f"{name}_{architecture}" for name in _OLD_NAMES)]
