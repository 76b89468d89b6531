"""Every app, called directly through its own interface: the same bytes and headers everywhere."""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

APPS = Path(__file__).parents[2] / "images" / "apps"
sys.path.insert(0, str(APPS))

MAX_BYTES = 16 * 1024 * 1024
JSON, BINARY = "application/json", "application/octet-stream"
ITEM = b'{"item_id":42,"q":null}'
NOT_FOUND = (404, JSON, b'{"detail":"Not Found"}')
NOT_ALLOWED = (405, JSON, b'{"detail":"Method Not Allowed"}')


class Request(NamedTuple):
    path: str
    method: str = "GET"
    query: str = ""
    body: bytes = b""
    content_type: str = "application/json"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def essence(self) -> tuple[int, str, bytes]:
        """What must not differ between apps; the length that was announced is checked on the way."""
        assert self.headers["content-length"] == str(len(self.body))
        return self.status, self.headers["content-type"], self.body


def environ(request: Request) -> dict[str, Any]:
    return {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": request.path.encode().decode("latin-1"),
        "QUERY_STRING": request.query,
        "CONTENT_TYPE": request.content_type,
        "CONTENT_LENGTH": str(len(request.body)),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }


def call_wsgi(app: Any, environ: dict[str, Any]) -> Answer:
    started: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> None:
        assert exc_info is None
        started.append((int(status.split()[0]), {name.lower(): value for name, value in headers}))

    body = app(environ, start_response)
    status, headers = started[0]
    answer = Answer(status, headers, b"".join(body))
    getattr(body, "close", lambda: None)()
    return answer


async def call_asgi(app: Any, request: Request) -> Answer:
    sent: list[dict[str, Any]] = []
    half = len(request.body) // 2
    received = iter(
        [
            {"type": "http.request", "body": request.body[:half], "more_body": True},
            {"type": "http.request", "body": request.body[half:], "more_body": False},
        ]
    )

    async def receive() -> dict[str, Any]:
        for message in received:
            return message
        never: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        return await never  # the client stays

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": quote(request.path).encode(),
        "root_path": "",
        "query_string": request.query.encode(),
        "headers": [(b"host", b"localhost"), (b"content-type", request.content_type.encode())],
        "server": ("localhost", 8000),
        "client": ("127.0.0.1", 40000),
    }
    await app(scope, receive, send)
    headers = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], headers, b"".join(part.get("body", b"") for part in sent[1:]))


class RSGIScope(NamedTuple):
    method: str
    path: str
    query_string: str


class RSGITransport:
    def __init__(self, answers: list[Answer]) -> None:
        self.answers = answers

    async def send_bytes(self, data: bytes) -> None:
        self.answers[0] = self.answers[0]._replace(body=self.answers[0].body + data)


class RSGIProtocol:
    def __init__(self, body: bytes) -> None:
        self.body = body
        self.answers: list[Answer] = []

    def response_stream(self, status: int, headers: list[tuple[str, str]]) -> RSGITransport:
        self.answers.append(Answer(status, dict(headers), b""))
        return RSGITransport(self.answers)

    async def __call__(self) -> bytes:
        return self.body

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.answers.append(Answer(status, dict(headers), body))


async def call_rsgi(app: Any, request: Request) -> Answer:
    protocol = RSGIProtocol(request.body)
    await app(RSGIScope(request.method, request.path, request.query), protocol)
    return protocol.answers[0]


Call = Callable[[Request], Answer]
RUNNER = asyncio.Runner()
INTERFACES = {
    "raw_wsgi": "wsgi",
    "flask_app": "wsgi",
    "raw_asgi": "asgi",
    "starlette_app": "asgi",
    "fastapi_app": "asgi",
    "raw_rsgi": "rsgi",
}


def load(module: str) -> Any:
    return importlib.import_module(module).app


def caller(module: str) -> Call:
    """How to ask one app, whatever interface it speaks."""
    app, interface = load(module), INTERFACES[module]
    if interface == "wsgi":
        return lambda request: call_wsgi(app, environ(request))
    if interface == "asgi":
        return lambda request: RUNNER.run(call_asgi(app, request))
    return lambda request: RUNNER.run(call_rsgi(app, request))


CALLERS = {module: caller(module) for module in INTERFACES}


@pytest.fixture(params=INTERFACES)
def ask(request: pytest.FixtureRequest) -> Call:
    return CALLERS[request.param]


@pytest.fixture(scope="module", autouse=True)
def runner() -> Iterator[None]:
    yield
    RUNNER.close()


REQUESTS = [
    (Request("/items/42"), (200, JSON, ITEM)),
    (Request("/sync/items/42"), (200, JSON, ITEM)),
    (Request("/items/007", query="q="), (200, JSON, b'{"item_id":7,"q":""}')),
    (Request("/items/1", query="x=1&q=a%20%22b%22%C3%A9"), (200, JSON, '{"item_id":1,"q":"a \\"b\\"é"}'.encode())),
    (Request("/bytes/0"), (200, BINARY, b"")),
    (Request("/bytes/600"), (200, BINARY, bytes(i % 251 for i in range(600)))),
    (Request("/sleep/1"), (200, JSON, b'{"slept_ms":1}')),
    (Request("/stream/0"), (200, BINARY, b"")),
    (Request("/stream/210"), (200, BINARY, bytes(range(251)) * 2)),
    (Request("/cpu/0"), (200, JSON, b'{"iterations":0,"value":1}')),
    (Request("/cpu/2"), (200, JSON, b'{"iterations":2,"value":377401575}')),
    (Request("/echo", "POST", body=b"\0\xffx"), (200, BINARY, b"\0\xffx")),
    (Request("/echo", "POST"), (200, BINARY, b"")),
    (Request("/"), NOT_FOUND),
    (Request("/items"), NOT_FOUND),
    (Request("/items/"), NOT_FOUND),
    (Request("/items/42/"), NOT_FOUND),
    (Request("/items//42"), NOT_FOUND),
    (Request("/items/-1"), NOT_FOUND),
    (Request("/items/x"), NOT_FOUND),
    (Request("/items/٤٢"), NOT_FOUND),
    (Request("/docs"), NOT_FOUND),
    (Request("/openapi.json"), NOT_FOUND),
    (Request("/static/x"), NOT_FOUND),
    (Request("/items/42", "POST"), NOT_ALLOWED),
    (Request("/items/42", "OPTIONS"), NOT_ALLOWED),
    (Request("/echo"), NOT_ALLOWED),
    (Request("/fingerprint", "DELETE"), NOT_ALLOWED),
]


@pytest.mark.parametrize(("request_", "expected"), REQUESTS, ids=lambda value: str(value[:2]))
def test_every_app_gives_the_same_answer(ask: Call, request_: Request, expected: tuple[int, str, bytes]) -> None:
    assert ask(request_).essence == expected


@pytest.mark.parametrize(
    ("path", "limit"), [("/bytes", MAX_BYTES), ("/sleep", 10_000), ("/stream", 10_000), ("/cpu", 10_000_000)]
)
def test_a_number_over_its_limit_is_refused(ask: Call, path: str, limit: int) -> None:
    text = f"{path}: {limit + 1} is over the limit of {limit}; ask for {limit} or less"
    assert ask(Request(f"{path}/{limit + 1}")).essence == (400, JSON, f'{{"detail":"{text}"}}'.encode())


def test_a_body_over_the_limit_is_refused(ask: Call) -> None:
    text = f"/echo: {MAX_BYTES + 1} is over the limit of {MAX_BYTES}; ask for {MAX_BYTES} or less"
    answer = ask(Request("/echo", "POST", body=bytes(MAX_BYTES + 1))).essence
    assert answer == (400, JSON, f'{{"detail":"{text}"}}'.encode())


def test_the_limits_themselves_are_allowed() -> None:
    answers = importlib.import_module("answers")
    assert len(answers.content(MAX_BYTES)) == len(answers.echo(bytes(MAX_BYTES))) == MAX_BYTES
    assert answers.seconds(10_000) == 10


def test_a_refused_method_names_the_allowed_one(ask: Call) -> None:
    assert "POST" in ask(Request("/echo")).headers["allow"]
    assert "GET" in ask(Request("/items/1", "PUT")).headers["allow"]


def agreed(request: Request) -> tuple[int, str, bytes]:
    """The one answer that all apps give."""
    answers = {module: call(request).essence for module, call in CALLERS.items()}
    assert len(set(answers.values())) == 1, answers
    return answers["raw_wsgi"]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**30), st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_any_item_with_any_query(item_id: int, q: str | None) -> None:
    query = "" if q is None else f"q={quote(q, safe='')}"
    status, _, body = agreed(Request(f"/items/{item_id}", query=query))
    assert (status, json.loads(body)) == (200, {"item_id": item_id, "q": q})


# No /sleep and /cpu, which would take their time, and no control characters, which servers refuse.
# Flask drops all but one of the slashes that a path begins with.
WORDS = ["items", "sync", "bytes", "echo", "42", "007", "-1", "+1", "1_0", "4.2", "", "..", "é", "４２", "²", "%"]
SEGMENTS = st.sampled_from(WORDS) | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5)
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map(lambda words: "/" + "/".join(words).lstrip("/"))


@settings(max_examples=60, deadline=None)
@given(PATHS, st.sampled_from(["GET", "POST", "PUT"]))
def test_any_path(path: str, method: str) -> None:
    assert agreed(Request(path, method))[0] in (200, 404, 405)


CONTENT_TYPES = [
    "",
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain; charset=utf-16",
    "nonsense",
]


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=3000), st.sampled_from(CONTENT_TYPES))
def test_any_body_comes_back(body: bytes, content_type: str) -> None:
    assert agreed(Request("/echo", "POST", body=body, content_type=content_type)) == (200, BINARY, body)


@pytest.mark.parametrize("module", ["raw_wsgi", "flask_app"])
@pytest.mark.parametrize("missing", ["QUERY_STRING", "CONTENT_TYPE", "CONTENT_LENGTH", "wsgi.input"])
def test_thin_environs_of_c_servers(module: str, missing: str) -> None:
    thin = environ(Request("/items/42"))
    del thin[missing]
    assert call_wsgi(load(module), thin).body == ITEM


@pytest.mark.parametrize(
    ("changes", "echoed"),
    [
        ({"CONTENT_LENGTH": ""}, b""),  # a body without a length, and a server that does not end it
        ({"CONTENT_LENGTH": "", "wsgi.input_terminated": True}, b"abc"),
        ({"CONTENT_LENGTH": "2"}, b"ab"),
    ],
)
@pytest.mark.parametrize("module", ["raw_wsgi", "flask_app"])
def test_bodies_are_read_as_far_as_the_server_promises(module: str, changes: dict[str, Any], echoed: bytes) -> None:
    assert call_wsgi(load(module), environ(Request("/echo", "POST", body=b"abc")) | changes).body == echoed


def test_a_body_without_a_stream_is_empty() -> None:
    thin = environ(Request("/echo", "POST", body=b"abc"))
    del thin["wsgi.input"]
    assert call_wsgi(load("raw_wsgi"), thin).body == b""


@pytest.mark.parametrize("module", ["raw_asgi", "starlette_app", "fastapi_app"])
def test_lifespan_starts_and_stops(module: str) -> None:
    received = iter(["lifespan.startup", "lifespan.shutdown"])
    sent: list[str] = []

    async def receive() -> dict[str, str]:
        return {"type": next(received)}

    async def send(message: dict[str, str]) -> None:
        sent.append(message["type"])

    RUNNER.run(load(module)({"type": "lifespan", "asgi": {"version": "3.0"}}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_an_unknown_scope_is_an_error() -> None:
    with pytest.raises(NotImplementedError, match="websocket"):
        RUNNER.run(load("raw_asgi")({"type": "websocket"}, None, None))


@pytest.mark.parametrize("module", ["raw_asgi", "starlette_app", "fastapi_app", "raw_rsgi"])
def test_sleep_lets_other_requests_through(module: str) -> None:
    call = call_rsgi if module == "raw_rsgi" else call_asgi
    order = []

    async def ask(path: str) -> None:
        order.append((await call(load(module), Request(path))).body)

    async def both() -> None:
        await asyncio.gather(ask("/sleep/30"), ask("/items/42"))

    RUNNER.run(both())
    assert order == [ITEM, b'{"slept_ms":30}']


@pytest.mark.parametrize("module", INTERFACES)
def test_the_fingerprint_tells_what_runs(module: str) -> None:
    status, content_type, body = CALLERS[module](Request("/fingerprint")).essence
    facts = json.loads(body)
    interface = INTERFACES[module]
    loop = None if interface == "wsgi" else "asyncio.unix_events._UnixSelectorEventLoop"
    assert (status, content_type) == (200, JSON)
    assert (facts["interface"], facts["loop"], facts["worker_class"]) == (interface, loop, None)
    assert (facts["pid"], facts["ppid"]) == (os.getpid(), os.getppid())
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["versions"]["flask"] == metadata.version("flask")


def test_an_answer_without_its_length_is_the_same_otherwise() -> None:
    whole, bare = (
        call_wsgi(load(module), environ(Request("/bytes/500"))) for module in ("raw_wsgi", "raw_wsgi_nolength")
    )
    assert (bare.status, bare.body) == (whole.status, whole.body)
    assert whole.headers.keys() - bare.headers.keys() == {"content-length"}


@pytest.mark.parametrize("module", ["raw_wsgi", "flask_app", "raw_wsgi_nolength"])
def test_mod_wsgi_finds_the_application(module: str) -> None:
    assert importlib.import_module(module).application is load(module)
