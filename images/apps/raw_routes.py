"""The routing that the raw apps share: a method and a path in, the name and number of a route out."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qs

import answers

NUMBERED = {
    "/items": "items",
    "/sync/items": "items",
    "/bytes": "bytes",
    "/sleep": "sleep",
    "/stream": "stream",
    "/cpu": "cpu",
}
FIXED = {"/echo": "echo", "/fingerprint": "fingerprint"}


class Reply(NamedTuple):
    """A whole answer. `headers` are (name, value) in lower case, Content-Length among them."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Refused(Exception):
    """No such route (404) or not with this method (405, with the method that `allow` names)."""

    def __init__(self, status: HTTPStatus, allow: str = "") -> None:
        super().__init__(status.phrase)
        self.status = status
        self.allow = allow


def resolve(method: str, path: str) -> tuple[str, int]:
    """The route of a request and the number in its path (0 where it has none). Raises Refused."""
    prefix, _, tail = path.rpartition("/")
    number = int(tail) if tail.isascii() and tail.isdigit() else None
    name = FIXED.get(path) if number is None else NUMBERED.get(prefix)
    if name is None:
        raise Refused(HTTPStatus.NOT_FOUND)
    allowed = "POST" if name == "echo" else "GET"
    if method != allowed:
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, allowed)
    return name, number or 0


def compute(name: str, number: int, query: str) -> Reply:
    """The answer of a route that needs neither a body nor a wait. Raises answers.OutOfBounds."""
    if name == "items":
        return json_reply(answers.item(number, query_value(query)))
    if name == "bytes":
        return binary_reply(answers.content(number))
    return json_reply(answers.cpu(number))


def stream_headers(pieces: int) -> list[tuple[str, str]]:
    """Of /stream: its length is known, for not every server frames a body without one."""
    return [("content-type", answers.BINARY), ("content-length", str(pieces * len(answers.PATTERN)))]


def refusal(error: Refused | answers.OutOfBounds) -> Reply:
    """The answer that an error turns into: 400, 404 or 405."""
    if isinstance(error, answers.OutOfBounds):
        return json_reply(answers.detail(str(error)), HTTPStatus.BAD_REQUEST)
    reply = json_reply(answers.detail(str(error)), error.status)
    return reply._replace(headers=[*reply.headers, ("allow", error.allow)]) if error.allow else reply


def json_reply(value: object, status: int = HTTPStatus.OK) -> Reply:
    return _reply(status, answers.JSON, answers.dump(value))


def binary_reply(body: bytes) -> Reply:
    return _reply(HTTPStatus.OK, answers.BINARY, body)


def query_value(query: str) -> str | None:
    """The parameter q of a query string."""
    return parse_qs(query, keep_blank_values=True).get("q", [None])[-1] if query else None


def _reply(status: int, content_type: str, body: bytes) -> Reply:
    return Reply(int(status), [("content-type", content_type), ("content-length", str(len(body)))], body)
