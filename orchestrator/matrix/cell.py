"""A cell, the launch it shares with others, and the image it needs: frozen values with stable readable ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.matrix.axes import AXES, COMPARED, IN_IDS, LAUNCH, OWN, Axis
from orchestrator.matrix.fields import with_attributes
from orchestrator.matrix.resolved import Variant

DOT = "·"


@dataclass(frozen=True)
class ImageKey:
    """What an image is made for."""

    image: str
    flavour: str
    mode: str
    python: str

    @property
    def id(self) -> str:
        return DOT.join((self.image, self.flavour, self.mode, f"py{self.python}"))


@dataclass(frozen=True)
@with_attributes({axis.name: (axis.stored, axis.before) for axis in OWN})
class Cell:
    """One point of the matrix: a variant, and a value of each axis, in the order of the table of axes.

    `threads` is None where the variant has no threads to set. `open` 0: closed loop; else open loop at so many percent
    of the throughput of the closed one.
    """

    variant: Variant
    if TYPE_CHECKING:
        flavour: str
        mode: str
        python: str
        app: str
        workload: str
        workers: int
        threads: int | None
        tls: bool
        connections: int
        tuned: bool = False
        twin: bool = False
        open: int = 0

    @property
    def launch_id(self) -> str:
        """Cells with the same launch id are measured on the same running server."""
        return self._id_of(axis for axis in IN_IDS if axis.place == LAUNCH)

    @property
    def id(self) -> str:
        return self._id_of(IN_IDS)

    def _id_of(self, axes: Iterable[Axis]) -> str:
        marks = (axis.marked(getattr(self, axis.name)) for axis in axes)
        return DOT.join((self.variant.name, *filter(None, marks)))

    @property
    def point(self) -> dict[str, object]:
        """Its value of every axis, those that come with the variant too."""
        return {axis.name: axis.of(self.variant) if axis.of else getattr(self, axis.name) for axis in AXES}

    @property
    def image(self) -> ImageKey:
        return ImageKey(self.variant.image, self.flavour, self.mode, self.python)

    @property
    def comparison(self) -> tuple[object, ...]:
        """Cells that agree in this stand in one table: they differ in the server, and how it is set up."""
        return tuple(getattr(self, axis) for axis in COMPARED)

    @property
    def closed(self) -> Cell:
        """The closed loop whose throughput an open one's rate refers to; a closed loop's own self."""
        return self.only(open=0) if self.open else self

    def only(self, **axes: object) -> Cell:
        """A copy with some axes changed."""
        return replace(self, **axes)  # type: ignore[arg-type]


def file_name(cell_id: str) -> str:
    """A cell's id as a name that every file system takes."""
    return cell_id.replace("/", "_").replace(DOT, ".") + ".json"
