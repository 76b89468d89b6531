"""The app on RSGI 1, granian's own interface."""

from __future__ import annotations

import asyncio
from typing import Protocol

import answers
import fingerprint
import raw_routes
from raw_routes import Reply


class Scope(Protocol):
    """The part of RSGI's HTTP scope that the app reads."""

    method: str
    path: str
    query_string: str


class HTTPProtocol(Protocol):
    """The part of RSGI's HTTP protocol that the app uses: calling it awaits the whole body."""

    async def __call__(self) -> bytes: ...

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None: ...


async def app(scope: Scope, protocol: HTTPProtocol) -> None:
    """Answer one request."""
    try:
        reply = await respond(scope, protocol)
    except (raw_routes.Refused, answers.OutOfBounds) as error:
        reply = raw_routes.refusal(error)
    protocol.response_bytes(reply.status, reply.headers, reply.body)


async def respond(scope: Scope, protocol: HTTPProtocol) -> Reply:
    name, number = raw_routes.resolve(scope.method, scope.path)
    if name == "sleep":
        await asyncio.sleep(answers.seconds(number))
        return raw_routes.json_reply(answers.slept(number))
    if name == "echo":
        return raw_routes.binary_reply(answers.echo(await protocol()))
    if name == "fingerprint":
        return raw_routes.json_reply(fingerprint.measure("rsgi"))
    return raw_routes.compute(name, number, scope.query_string)
