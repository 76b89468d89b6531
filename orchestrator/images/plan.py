"""What an image is made of. Engines turn an `ImageSpec` into a container image or a virtual environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.matrix.cell import Cell, ImageKey
from orchestrator.matrix.models import Flavour, Matrix, SystemPackages
from orchestrator.matrix.requirement import pinned_versions
from orchestrator.matrix.resolved import Variant

ROOT = Path(__file__).resolve().parents[2]
"""The project: the folder that holds images/, loadgen/ and requirements/."""


@dataclass(frozen=True)
class Base:
    """A base image: the official reference, and the stand-in for machines that cannot pull it.

    Flavours may share one: `flavour`, for messages alone, does not tell bases apart.
    """

    flavour: str = field(compare=False)
    python: str
    official: str
    standin: str


@dataclass(frozen=True)
class ImageSpec:
    """All that decides the content of an image, apart from the bases' own content and the project's files.

    The install mode acts on `compiled`: the server's own distributions and those of its dependencies with native code.
    A wheel needs no packages to build with.
    """

    key: ImageKey
    base: Base
    dockerfile: str
    packages: tuple[str, ...]
    compiled: tuple[str, ...]
    system: SystemPackages
    build_base: Base | None = None

    @property
    def target(self) -> str:
        """The stage of the Dockerfile that is enough: without system packages to run with, not the last one ("")."""
        return "" if self.system.run else "server"

    def build_args(self) -> dict[str, str]:
        """The build arguments of images/*/Dockerfile, apart from the bases and the host's settings."""
        return {
            "PACKAGES": " ".join(self.packages),
            "COMPILED": " ".join(self.compiled),
            "INSTALL_MODE": self.key.mode,
            "BUILD_SYSTEM": " ".join(self.system.build if self.key.mode == "sdist" else ()),
            "RUN_SYSTEM": " ".join(self.system.run),
        }


LOADGEN = ImageSpec(
    key=ImageKey("loadgen", "slim", "wheel", "3.13"),
    base=Base("slim", "3.13", "python:3.13-slim-trixie", "slim"),
    dockerfile="images/loadgen/Dockerfile",
    packages=(),
    compiled=(),
    system=SystemPackages(),
)
"""The load generator's own image; its context is the project, see `context.loadgen_context`."""


@dataclass(frozen=True)
class BaseFacts:
    """The base that was really used. `standin` is "" for an official image; `note` says why it was taken."""

    reference: str
    digest: str
    standin: str
    note: str


@dataclass(frozen=True)
class BuiltImage:
    """An image that exists. `install` is the report of images/build/install.py, failures included."""

    spec: ImageSpec
    reference: str
    digest: str
    base: BaseFacts
    architecture: str
    install: Mapping[str, Any]

    @property
    def installed(self) -> bool:
        return bool(self.install.get("outcome") != "failed")

    @property
    def versions(self) -> dict[str, str]:
        """Version by name of every distribution that the server's install brought."""
        return {package["name"]: package["version"] for package in self.install.get("packages", ())}


def unfinished(report: Mapping[str, Any]) -> bool:
    """Whether an install ended at its time limit. It may not the next time, so such an image is made anew."""
    return bool((report.get("error") or {}).get("kind") == "timeout")


def base_of(matrix: Matrix, flavour: str, python: str) -> Base:
    """The base of a flavour for a Python version."""
    entry = matrix.flavours[flavour]
    return Base(flavour, python, entry.base.format(python=python), entry.standin)


def build_base_of(matrix: Matrix, flavour: str, python: str) -> Base | None:
    """The base that servers are built on where it is not the one that they run on."""
    entry = matrix.flavours[flavour]
    if not entry.build_base:
        return None
    return Base(flavour, python, entry.build_base.format(python=python), entry.build_standin)


def image_of(matrix: Matrix, cell: Cell) -> ImageSpec:
    """The image that a cell is measured in."""
    flavour = matrix.flavours[cell.flavour]
    return ImageSpec(
        key=cell.image,
        base=base_of(matrix, cell.flavour, cell.python),
        dockerfile=f"{_folder(flavour)}/Dockerfile",
        packages=cell.variant.install,
        compiled=_acted_on(cell.variant),
        system=cell.variant.system.get(cell.flavour, SystemPackages()),
        build_base=build_base_of(matrix, cell.flavour, cell.python),
    )


def _folder(flavour: Flavour) -> str:
    """Where a flavour's Dockerfile is below images/: one serves all that build their servers where they run them."""
    return flavour.dockerfile or ("server-multistage" if flavour.build_base else "server")


def _acted_on(variant: Variant) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*pinned_versions(variant.install), *variant.compiled]))


def images_of(matrix: Matrix, cells: tuple[Cell, ...]) -> tuple[ImageSpec, ...]:
    """Every image that the cells need, once, in their order."""
    specs = {cell.image: image_of(matrix, cell) for cell in reversed(cells)}
    return tuple(specs[key] for key in dict.fromkeys(cell.image for cell in cells))
