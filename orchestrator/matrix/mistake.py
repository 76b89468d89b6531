"""A mistake in matrix.yaml that only a look at the whole file shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.errors import nearest
from orchestrator.matrix.yaml_text import FieldPath


@dataclass(frozen=True)
class Mistake:
    """`path` is that of the field, so that `loading` can add file and line."""

    path: FieldPath
    what: str
    nearest: str = ""
    next_step: str = ""


class WrongText(ValueError):
    """A text of matrix.yaml that its field cannot take; the place is added by whoever read the file."""

    def __init__(self, what: str, nearest: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.words = (what, nearest, next_step)


def shown(value: object) -> str:
    """A value of an axis as matrix.yaml writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def unknown(path: FieldPath, kind: str, name: str, valid: Iterable[str]) -> Mistake:
    """`name` stands where one of `valid` should."""
    names = list(valid)
    first = ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
    return Mistake(path, f"no {kind} is called {name!r}", nearest(name, names), f"one of: {first}")
