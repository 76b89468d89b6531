"""`matrix bases`: the stand-ins of flavours whose base cannot be pulled, made before a run needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.engines.docker.bases import ImageStore, make_standin, standin_reference
from orchestrator.engines.protocol import Say
from orchestrator.errors import SpecError, nearest
from orchestrator.images.plan import Base, base_of, build_base_of
from orchestrator.matrix.models import Matrix


def bases_of(matrix: Matrix, flavours: Sequence[str], python: str) -> tuple[Base, ...]:
    """The bases of these flavours that have a stand-in, each once. Raises SpecError for an unknown flavour."""
    for flavour in flavours:
        if flavour not in matrix.flavours:
            raise SpecError(
                f"no flavour is called {flavour!r}",
                nearest=nearest(flavour, matrix.flavours),
                next_step=f"one of: {', '.join(matrix.flavours)}",
            )
    found = (base for flavour in flavours for base in _bases(matrix, flavour, python))
    return tuple({base.standin: base for base in found}.values())


def _bases(matrix: Matrix, flavour: str, python: str) -> Iterator[Base]:
    for base in (base_of(matrix, flavour, python), build_base_of(matrix, flavour, python)):
        if base is not None and base.standin:
            yield base


def make_bases(store: ImageStore, bases: Sequence[Base], say: Say) -> None:
    """Make those that today's recipe has not made yet. Raises EnvironmentProblem where this machine cannot."""
    for base in bases:
        reference = standin_reference(base)
        if store.digest(reference) is None:
            say(f"making {reference}, which stands in for {base.official}")
            make_standin(store, base, say)
        else:
            say(f"{reference} is here")
