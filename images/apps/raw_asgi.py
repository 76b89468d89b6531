"""The app as a bare ASGI 3 callable, with lifespan; it also runs where a server knows no lifespan."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import answers
import fingerprint
import raw_routes
from raw_routes import Reply

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request, or the server's start and stop. Raises NotImplementedError for other scopes."""
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    if scope["type"] != "http":
        raise NotImplementedError(f"scope type {scope['type']!r}: this app speaks http and lifespan")
    try:
        name, number = raw_routes.resolve(scope["method"], scope["path"])
        if name == "stream":
            await stream(answers.pieces(number), send)
            return
        reply = await respond(name, number, scope, receive)
    except (raw_routes.Refused, answers.OutOfBounds) as error:
        reply = raw_routes.refusal(error)
    await send(start(reply.status, reply.headers))
    await send({"type": "http.response.body", "body": reply.body})


def start(status: int, headers: list[tuple[str, str]]) -> Message:
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    return {"type": "http.response.start", "status": status, "headers": encoded}


async def stream(pieces: int, send: Send) -> None:
    await send(start(200, raw_routes.stream_headers(pieces)))
    for _ in range(pieces):
        await asyncio.sleep(answers.GAP_S)
        await send({"type": "http.response.body", "body": answers.PATTERN, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def respond(name: str, number: int, scope: Scope, receive: Receive) -> Reply:
    if name == "sleep":
        await asyncio.sleep(answers.seconds(number))
        return raw_routes.json_reply(answers.slept(number))
    if name == "echo":
        return raw_routes.binary_reply(answers.echo(await read_body(receive)))
    if name == "fingerprint":
        return raw_routes.json_reply(fingerprint.measure("asgi"))
    return raw_routes.compute(name, number, scope["query_string"].decode("latin-1"))


async def read_body(receive: Receive) -> bytes:
    """The request's body; what comes after the limit is dropped as it arrives, so memory stays bounded."""
    chunks, size, more = [], 0, True
    while more:
        message = await receive()
        chunk = message.get("body", b"")
        if size <= answers.MAX_BYTES:
            chunks.append(chunk)
            size += len(chunk)
        more = message.get("more_body", False)
    return b"".join(chunks)


async def lifespan(receive: Receive, send: Send) -> None:
    kind = ""
    while kind != "lifespan.shutdown":
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
