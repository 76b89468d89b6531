"""Numbers as readers see them. Three significant figures: no measurement here is worth more."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Protocol

NONE = "—"
"""Stands where there is no figure."""


_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_WORDS = frozenset(
    (
        "server",
        "what was found to help",
        "where",
        "system packages",
        "marks",
        "cell",
        "outcome",
        "reason",
        "flags",
        "request in flight",
        "queued request",
        "SIGINT",
        "second signal",
        "signal to the group",
        "longer than grace",
        "streamed answer",
        "timeline",
        "protocol",
        "TLS",
    )
)


class Estimate(Protocol):
    """A value and the ends of its interval; no ends where none is known."""

    @property
    def value(self) -> float: ...

    @property
    def low(self) -> float | None: ...

    @property
    def high(self) -> float | None: ...


def on_left(column: str) -> bool:
    """Whether it is a column of words (also "SIGINT, 2 workers"); the others, figures, are set to the right."""
    return column.partition(", ")[0] in _WORDS


def plain(text: str) -> str:
    """One line without terminal colours, control and invisible characters: reasons are a server's own words."""
    words = (_visible(word) for word in _COLOUR.sub("", text).split())
    return " ".join(filter(None, words))


def _visible(word: str) -> str:
    return "".join(char for char in word if not unicodedata.category(char).startswith("C"))


def short(value: float) -> str:
    """12345 -> 12.3k, 0.0321 -> 0.032."""
    for divisor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * divisor:
            return three(value / divisor) + unit
    return three(value)


def three(value: float) -> str:
    """Three figures where the value is 0.1 or more, two below."""
    if value == 0:
        return "0"
    if value < 0.0995:
        return f"{value:#.2g}"
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def interval(estimate: Estimate, sign: str = "", number: Callable[[float], str] = short) -> str:
    """≥12.3k [11.9k, 12.8k]; without brackets where no interval is known."""
    if estimate.low is None or estimate.high is None:
        return f"{sign}{number(estimate.value)}"
    return f"{sign}{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def scaled(value: float | None, divisor: float) -> str:
    """A raw value in a greater unit, or — for none."""
    return NONE if value is None else three(value / divisor)


def count(number: int, noun: str) -> str:
    """1 worker, 2 workers."""
    return f"{number} {noun}{'s' * (number != 1)}"


def listed(names: list[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
