"""The axes of a cell in a reader's words: over a column, in the name of a row, in a title, in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.matrix.axes import TOLD, Words

Value = str | int | bool | None

WORDS: Mapping[str, Words] = {axis.name: axis.words for axis in TOLD if axis.words}
"""By axis, in the order in which names and titles tell them."""


def ordered(values: Iterable[Value]) -> tuple[Value, ...]:
    """Each value once: numbers by size, after none at all; words in the order in which they came."""
    found = list(dict.fromkeys(values))
    if any(isinstance(value, str) for value in found):
        return tuple(found)
    return tuple(sorted(found, key=lambda value: -1 if value is None else int(value)))
