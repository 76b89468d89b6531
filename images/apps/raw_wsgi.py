"""The app as a bare WSGI callable (PEP 3333): what a server costs without a framework."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any

import answers
import fingerprint
import raw_routes
from raw_routes import Reply

Environ = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], object]
STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


def app(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Answer one request, blocking the worker while /sleep sleeps."""
    try:
        name, number = raw_routes.resolve(environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""))
        if name == "stream":
            return stream(answers.pieces(number), start_response)
        reply = respond(name, number, environ)
    except (raw_routes.Refused, answers.OutOfBounds) as error:
        reply = raw_routes.refusal(error)
    start_response(STATUS_LINES[reply.status], reply.headers)
    return [reply.body]


def stream(pieces: int, start_response: StartResponse) -> Iterator[bytes]:
    start_response(STATUS_LINES[200], raw_routes.stream_headers(pieces))
    return paced(pieces)


def paced(pieces: int) -> Iterator[bytes]:
    for _ in range(pieces):
        time.sleep(answers.GAP_S)
        yield answers.PATTERN


def respond(name: str, number: int, environ: Environ) -> Reply:
    if name == "sleep":
        time.sleep(answers.seconds(number))
        return raw_routes.json_reply(answers.slept(number))
    if name == "echo":
        return raw_routes.binary_reply(answers.echo(read_body(environ)))
    if name == "fingerprint":
        return raw_routes.json_reply(fingerprint.measure("wsgi"))
    return raw_routes.compute(name, number, environ.get("QUERY_STRING", ""))


def read_body(environ: Environ) -> bytes:
    """The request's body, at most one byte more than the limit.

    The C servers' environs are thin: no CONTENT_LENGTH, an empty one, or no wsgi.input at all.
    Without a length a body is read only where the server promises to end it (`wsgi.input_terminated`).
    """
    stream = environ.get("wsgi.input")
    length = environ.get("CONTENT_LENGTH")
    if stream is None or not (length or environ.get("wsgi.input_terminated")):
        return b""
    left = min(int(length) if length else answers.MAX_BYTES + 1, answers.MAX_BYTES + 1)
    chunks = []
    while left > 0 and (chunk := stream.read(left)):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


application = app  # the name that mod_wsgi looks for
