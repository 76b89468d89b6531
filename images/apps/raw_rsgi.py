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


class Transport(Protocol):
    """Takes the pieces of a streamed body."""

    async def send_bytes(self, data: bytes) -> None: ...


class HTTPProtocol(Protocol):
    """The part of RSGI's HTTP protocol that the app uses: calling it awaits the whole body."""

    async def __call__(self) -> bytes: ...

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None: ...

    def response_stream(self, status: int, headers: list[tuple[str, str]]) -> Transport: ...


async def app(scope: Scope, protocol: HTTPProtocol) -> None:
    """Answer one request."""
    try:
        name, number = raw_routes.resolve(scope.method, scope.path)
        if name == "stream":
            await stream(answers.pieces(number), protocol)
            return
        reply = await respond(name, number, scope, protocol)
    except (raw_routes.Refused, answers.OutOfBounds) as error:
        reply = raw_routes.refusal(error)
    protocol.response_bytes(reply.status, reply.headers, reply.body)


async def stream(pieces: int, protocol: HTTPProtocol) -> None:
    transport = protocol.response_stream(200, raw_routes.stream_headers(pieces))
    for _ in range(pieces):
        await asyncio.sleep(answers.GAP_S)
        await transport.send_bytes(answers.PATTERN)


async def respond(name: str, number: int, scope: Scope, protocol: HTTPProtocol) -> Reply:
    if name == "sleep":
        await asyncio.sleep(answers.seconds(number))
        return raw_routes.json_reply(answers.slept(number))
    if name == "echo":
        return raw_routes.binary_reply(answers.echo(await protocol()))
    if name == "fingerprint":
        return raw_routes.json_reply(fingerprint.measure("rsgi"))
    return raw_routes.compute(name, number, scope.query_string)
