"""The load generator's answers to single requests in words, and how one differs from the right one."""

from __future__ import annotations

from pydantic import ValidationError

from loadgen.contract import Answered, Problem

SHOWN = 80
"""Bytes of a body that a sentence shows."""
TELLING_HEADERS = ("content-encoding", "location", "retry-after")


def words_of_answer(answer: Answered) -> str:
    """Status, the headers that explain it, and the first bytes of the body; or why there is none."""
    if answer.error or answer.status is None:
        return words_of_problem(answer.error)
    status = f"status {answer.status} {answer.reason or ''}".strip()
    return f"{status}, {telling_headers(answer)}body {shown(answer.body)}"


def words_of_problem(problem: Problem | None) -> str:
    """Why a request has no answer."""
    return (problem.detail or problem.kind) if problem else "no answer"


def telling_headers(answer: Answered) -> str:
    """Those that explain a status, each with a comma after it."""
    return "".join(f"{name.title()}: {value}, " for name, value in answer.headers if name.lower() in TELLING_HEADERS)


def first_mistake(error: ValidationError) -> str:
    """Where the first mistake is and what is wrong with it."""
    found = error.errors(include_url=False)[0]
    where = ".".join(map(str, found["loc"]))
    return f"{where}: {found['msg']}" if where else str(found["msg"])


def shown(body: bytes) -> str:
    """The first bytes of a body, and how many there are where those are not all."""
    return repr(body) if len(body) <= SHOWN else f"{body[:SHOWN]!r}… ({len(body)} bytes)"


def differing(got: bytes, wanted: bytes) -> str:
    """How a body differs from the right one: both, or both from where they part."""
    if max(len(got), len(wanted)) <= SHOWN:
        return f"body {got!r}, not {wanted!r}"
    at = next((at for at, pair in enumerate(zip(got, wanted, strict=False)) if pair[0] != pair[1]),
              min(len(got), len(wanted)))  # fmt: skip
    return (
        f"body of {len(got)} bytes, not {len(wanted)}; from byte {at} on "
        f"{got[at : at + SHOWN // 2]!r}, not {wanted[at : at + SHOWN // 2]!r}"
    )
