"""The axes of a cell in a reader's words: over a column, in the name of a row, in a title, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.layout.text import count

Value = str | int | bool | None
Said = Callable[[Any], str]


def _unsaid(_: Any) -> str:
    return ""


@dataclass(frozen=True)
class Words:
    """`by`: the axis itself. The others tell a value of it; "" where it goes without saying.

    `heading` stands over its column, `name` in the name of a row, `title` in a title, `against` after "×" and "with".
    `at` goes before a value in a sentence. `rising`: the greatest value comes last, and rows are found by it.
    """

    by: str
    heading: Said = str
    name: Said = str
    title: Said = str
    against: Said = str
    at: str = "at"
    rising: bool = False


def _numbers(noun: str, letter: str) -> Words:
    return Words(
        by=f"{noun}s",
        heading=lambda value: "none" if value is None else str(value),
        name=lambda value: "" if value is None else f"{letter}{value}",
        title=lambda value: f"no {noun}s" if value is None else count(value, noun),
        against=lambda value: count(value, noun),
        rising=True,
    )


def _python(value: str) -> str:
    return f"Python {value}"


def _name(twin: bool) -> str:
    return "second name" if twin else "own name"


def _tuned(value: bool) -> str:
    return "tuned" if value else ""


WORDS: Mapping[str, Words] = {
    "protocol": Words("protocol", name=_unsaid, title=_unsaid),
    "app": Words("app", at="with"),
    "flavour": Words("flavour", at="on"),
    "mode": Words("install mode", name=lambda value: "" if value == "wheel" else value, at="from"),
    "python": Words("Python", name=lambda value: f"py{value}", title=_python, against=_python, at="on"),
    "workers": _numbers("worker", "w"),
    "threads": _numbers("thread", "t"),
    "tuned": Words("tuned", name=_tuned, title=_tuned),
    "twin": Words(
        "name", _name, lambda value: "twin" if value else "", lambda value: _name(value) if value else "", _name,
        at="under its",
    ),
    "tls": Words(
        "TLS", lambda value: "TLS" if value else "no TLS", lambda value: "tls" if value else "",
        lambda value: "TLS" if value else "", lambda value: "TLS" if value else "no TLS", at="with",
    ),
    "workload": Words("workload", at="for"),
    "open": Words(
        "load", lambda value: f"{value} %" if value else "closed", lambda value: f"open{value}" if value else "",
        lambda value: f"open loop at {value} %" if value else "", at="at",
    ),
    "connections": _numbers("connection", "c"),
}  # fmt: skip
"""By axis, in the order in which names and titles tell them."""


def ordered(values: Iterable[Value]) -> tuple[Value, ...]:
    """Each value once: numbers by size, after none at all; words in the order in which they came."""
    found = list(dict.fromkeys(values))
    if any(isinstance(value, str) for value in found):
        return tuple(found)
    return tuple(sorted(found, key=lambda value: -1 if value is None else int(value)))
