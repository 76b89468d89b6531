"""What every app answers: pure functions from the numbers of a path to the bytes of a body.

All apps import this module, so that a difference between two measurements is a difference between
servers or frameworks and never one of the answers. docs/apps.md lists the routes.
"""

from __future__ import annotations

import json

JSON = "application/json"
BINARY = "application/octet-stream"

MAX_BYTES = 16 * 1024 * 1024
"""Longest body of /bytes/{n} and of POST /echo, in bytes."""
MAX_SLEEP_MS = 10_000
MAX_ITERATIONS = 10_000_000

# A prime length: a block that arrives twice, late or not at all never looks like the right one.
PATTERN = bytes(range(251))

GAP_S = 0.1


class OutOfBounds(ValueError):
    """A number in the request is greater than its limit; every app answers 400 with this text."""


def item(item_id: int, q: str | None) -> dict[str, object]:
    """The value of /items/{id}; as JSON and without a query it is the 23 bytes `{"item_id":42,"q":null}`."""
    return {"item_id": item_id, "q": q}


def content(length: int) -> bytes:
    """The body of /bytes/{n}: byte i is i modulo 251. Raises OutOfBounds."""
    _check("bytes", length, MAX_BYTES)
    whole, rest = divmod(length, len(PATTERN))
    return PATTERN * whole + PATTERN[:rest]


def echo(body: bytes) -> bytes:
    """The body of POST /echo, unchanged. Raises OutOfBounds."""
    _check("echo", len(body), MAX_BYTES)
    return body


def seconds(milliseconds: int) -> float:
    """How long /sleep/{ms} sleeps. Raises OutOfBounds."""
    _check("sleep", milliseconds, MAX_SLEEP_MS)
    return milliseconds / 1000


def slept(milliseconds: int) -> dict[str, object]:
    """The value that /sleep/{ms} answers once it has slept."""
    return {"slept_ms": milliseconds}


def pieces(milliseconds: int) -> int:
    """How many times /stream/{ms} sends PATTERN, each after GAP_S seconds. Raises OutOfBounds."""
    _check("stream", milliseconds, MAX_SLEEP_MS)
    return milliseconds // int(GAP_S * 1000)


def cpu(iterations: int) -> dict[str, object]:
    """Burn CPU in pure Python and give the value of /cpu/{iterations}. Raises OutOfBounds.

    Steps of the linear congruential generator that the C standard prints as its example of rand().
    """
    _check("cpu", iterations, MAX_ITERATIONS)
    value = 1
    for _ in range(iterations):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    return {"iterations": iterations, "value": value}


def detail(text: str) -> dict[str, object]:
    """The value of an answer that is not 200, in FastAPI's own shape."""
    return {"detail": text}


def dump(value: object) -> bytes:
    """Compact JSON, as Starlette's JSONResponse writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _check(route: str, number: int, limit: int) -> None:
    if number > limit:
        raise OutOfBounds(f"/{route}: {number} is over the limit of {limit}; ask for {limit} or less")
