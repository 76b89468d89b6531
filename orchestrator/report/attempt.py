"""A piece of a report that cannot be made leaves a sentence in its place, and costs no other piece anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from orchestrator.errors import fault

T = TypeVar("T")


class Attempt(Protocol):
    """Makes a piece: a tuple of it alone, or an empty one where that is not possible. `what` names it."""

    def __call__(self, what: str, make: Callable[[], T]) -> tuple[T, ...]: ...


class Attempts:
    """Keeps a sentence for each piece that could not be made."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def __call__(self, what: str, make: Callable[[], T]) -> tuple[T, ...]:
        try:
            return (make(),)
        except Exception as error:
            self.failures.append(f"{what} could not be made, for a fault of this program: {fault(error)}")
            return ()


def plainly(what: str, make: Callable[[], T]) -> tuple[T, ...]:  # noqa: ARG001
    """Lets what goes wrong in it go on."""
    return (make(),)
