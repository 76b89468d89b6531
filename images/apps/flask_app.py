"""The app on Flask, written as its documentation writes one."""

from __future__ import annotations

import time
from collections.abc import Iterator

import answers
import fingerprint
from flask import Flask, Response, request
from flask.json.provider import DefaultJSONProvider
from werkzeug.exceptions import HTTPException
from werkzeug.routing import IntegerConverter
from werkzeug.wrappers import Response as BaseResponse


class JSONProvider(DefaultJSONProvider):
    """Flask's own provider without the newline that it ends every answer with."""

    def response(self, *args: object, **kwargs: object) -> Response:
        value = args[0] if args else kwargs
        return Response(self.dumps(value, separators=(",", ":")), mimetype=self.mimetype)


class AsciiIntegerConverter(IntegerConverter):
    """Flask's own `int` also takes the digits of other scripts, which the other apps do not."""

    regex = "[0-9]+"


app = Flask(__name__, static_folder=None)
app.json = JSONProvider(app)
app.json.ensure_ascii = False
app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
app.url_map.converters["int"] = AsciiIntegerConverter
app.url_map.merge_slashes = False


@app.get("/items/<int:item_id>")
@app.get("/sync/items/<int:item_id>")
def read_item(item_id: int) -> dict[str, object]:
    return answers.item(item_id, request.args.get("q"))


@app.get("/bytes/<int:length>")
def read_bytes(length: int) -> Response:
    return Response(answers.content(length), mimetype=answers.BINARY)


@app.get("/sleep/<int:milliseconds>")
def sleep(milliseconds: int) -> dict[str, object]:
    time.sleep(answers.seconds(milliseconds))
    return answers.slept(milliseconds)


@app.get("/stream/<int:milliseconds>")
def stream(milliseconds: int) -> Response:
    pieces = answers.pieces(milliseconds)
    length = {"Content-Length": str(pieces * len(answers.PATTERN))}
    return Response(paced(pieces), mimetype=answers.BINARY, headers=length)


def paced(pieces: int) -> Iterator[bytes]:
    for _ in range(pieces):
        time.sleep(answers.GAP_S)
        yield answers.PATTERN


@app.post("/echo")
def echo() -> Response:
    return Response(answers.echo(request.get_data()), mimetype=answers.BINARY)


@app.get("/cpu/<int:iterations>")
def burn_cpu(iterations: int) -> dict[str, object]:
    return answers.cpu(iterations)


@app.get("/fingerprint")
def read_fingerprint() -> dict[str, object]:
    return fingerprint.measure("wsgi")


@app.errorhandler(HTTPException)
def refuse(error: HTTPException) -> BaseResponse:
    response = error.get_response()
    response.data = answers.dump(answers.detail(error.name))
    response.content_type = answers.JSON
    return response


@app.errorhandler(answers.OutOfBounds)
def refuse_number(error: answers.OutOfBounds) -> tuple[dict[str, object], int]:
    return answers.detail(str(error)), 400


application = app  # the name that mod_wsgi looks for
