"""The app on Starlette, written as its documentation writes one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import answers
import fingerprint
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route


async def read_item(request: Request) -> JSONResponse:
    return JSONResponse(answers.item(request.path_params["item_id"], request.query_params.get("q")))


def read_item_sync(request: Request) -> JSONResponse:  # Starlette runs a plain function in a thread
    return JSONResponse(answers.item(request.path_params["item_id"], request.query_params.get("q")))


async def read_bytes(request: Request) -> Response:
    return Response(answers.content(request.path_params["length"]), media_type=answers.BINARY)


async def sleep(request: Request) -> JSONResponse:
    milliseconds = request.path_params["milliseconds"]
    await asyncio.sleep(answers.seconds(milliseconds))
    return JSONResponse(answers.slept(milliseconds))


async def stream(request: Request) -> StreamingResponse:
    pieces = answers.pieces(request.path_params["milliseconds"])
    length = {"Content-Length": str(pieces * len(answers.PATTERN))}
    return StreamingResponse(paced(pieces), media_type=answers.BINARY, headers=length)


async def paced(pieces: int) -> AsyncIterator[bytes]:
    for _ in range(pieces):
        await asyncio.sleep(answers.GAP_S)
        yield answers.PATTERN


async def echo(request: Request) -> Response:
    return Response(answers.echo(await request.body()), media_type=answers.BINARY)


async def burn_cpu(request: Request) -> JSONResponse:
    return JSONResponse(answers.cpu(request.path_params["iterations"]))


async def read_fingerprint(_: Request) -> JSONResponse:
    return JSONResponse(fingerprint.measure("asgi"))


async def refuse(_: Request, error: Exception) -> JSONResponse:
    if isinstance(error, HTTPException):
        return JSONResponse(answers.detail(error.detail), error.status_code, error.headers)
    return JSONResponse(answers.detail(str(error)), 400)


app = Starlette(
    routes=[
        Route("/items/{item_id:int}", read_item),
        Route("/sync/items/{item_id:int}", read_item_sync),
        Route("/bytes/{length:int}", read_bytes),
        Route("/sleep/{milliseconds:int}", sleep),
        Route("/stream/{milliseconds:int}", stream),
        Route("/echo", echo, methods=["POST"]),
        Route("/cpu/{iterations:int}", burn_cpu),
        Route("/fingerprint", read_fingerprint),
    ],
    exception_handlers={HTTPException: refuse, answers.OutOfBounds: refuse},
)
app.router.redirect_slashes = False
