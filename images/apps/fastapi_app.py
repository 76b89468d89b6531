"""The app on FastAPI: an asynchronous and a synchronous endpoint for the item."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import answers
import fingerprint
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

# Without the OpenAPI pages every path that is not a route answers 404, as in the other apps.
app = FastAPI(openapi_url=None, redirect_slashes=False)


@app.get("/items/{item_id:int}")
async def read_item(item_id: int, q: str | None = None) -> dict[str, object]:
    return answers.item(item_id, q)


@app.get("/sync/items/{item_id:int}")
def read_item_sync(item_id: int, q: str | None = None) -> dict[str, object]:
    return answers.item(item_id, q)


@app.get("/bytes/{length:int}")
async def read_bytes(length: int) -> Response:
    return Response(answers.content(length), media_type=answers.BINARY)


@app.get("/sleep/{milliseconds:int}")
async def sleep(milliseconds: int) -> dict[str, object]:
    await asyncio.sleep(answers.seconds(milliseconds))
    return answers.slept(milliseconds)


@app.get("/stream/{milliseconds:int}")
async def stream(milliseconds: int) -> StreamingResponse:
    pieces = answers.pieces(milliseconds)
    length = {"Content-Length": str(pieces * len(answers.PATTERN))}
    return StreamingResponse(paced(pieces), media_type=answers.BINARY, headers=length)


async def paced(pieces: int) -> AsyncIterator[bytes]:
    for _ in range(pieces):
        await asyncio.sleep(answers.GAP_S)
        yield answers.PATTERN


@app.post("/echo")
async def echo(request: Request) -> Response:
    return Response(answers.echo(await request.body()), media_type=answers.BINARY)


@app.get("/cpu/{iterations:int}")
async def burn_cpu(iterations: int) -> dict[str, object]:
    return answers.cpu(iterations)


@app.get("/fingerprint")
async def read_fingerprint() -> dict[str, object]:
    return fingerprint.measure("asgi")


@app.exception_handler(answers.OutOfBounds)
async def refuse(_: Request, error: answers.OutOfBounds) -> JSONResponse:
    return JSONResponse(answers.detail(str(error)), 400)
