"""A cell, the launch it shares with others, and the image it needs: frozen values with stable readable ids."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.matrix.resolved import Variant

DOT = "·"
COMPARED = ("workload", "tls", "open", "connections")
"""Axes in which cells that are compared never differ; a suite's `apart` names more."""


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
class Cell:
    """One point of the matrix. `threads` is None where the variant has no threads to set."""

    variant: Variant
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
    """0: closed loop. Else open loop at so many percent of the throughput of the closed one."""

    @property
    def launch_id(self) -> str:
        """Cells with the same launch id are measured on the same running server."""
        parts = [self.variant.name, self.flavour, self.mode, f"py{self.python}", self.app, f"w{self.workers}"]
        if self.threads is not None:
            parts.append(f"t{self.threads}")
        if self.tls:
            parts.append("tls")
        if self.tuned:
            parts.append("tuned")
        if self.twin:
            parts.append("twin")
        return DOT.join(parts)

    @property
    def id(self) -> str:
        workload = [] if self.workload == "item" else [self.workload]
        rate = [f"open{self.open}"] if self.open else []
        return DOT.join((self.launch_id, *workload, *rate, f"c{self.connections}"))

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
