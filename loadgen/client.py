"""Single requests over blocking sockets: `fetch` for whole answers, `wait` for the first right one."""

from __future__ import annotations

import base64
import socket
import ssl
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from loadgen import spec as specs
from loadgen.answer import Answer, Parser
from loadgen.errors import ProtocolError
from loadgen.exchange import request_bytes
from loadgen.spec import Expect, Json, Tls
from loadgen.stream import Address, resolve
from loadgen.target import split

FIRST_PAUSE_S, LAST_PAUSE_S = 0.005, 0.05


@dataclass(frozen=True)
class Request:
    """One request; `tls` says how to verify an https URL."""

    url: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    timeout_s: float = 10.0
    tls: Tls = field(default_factory=Tls)

    @cached_property
    def address(self) -> Address:
        """Where it goes. Raises SpecError."""
        return resolve(self.url, self.tls)

    def wire(self) -> bytes:
        """The bytes to send."""
        url = split(self.url)
        return request_bytes(self.method, url, url.target, self.headers, self.body)


class Failure(Exception):
    """No answer: `kind` is one of the kinds of error of a LoadResult."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail

    def to_json(self) -> Json:
        """The error as the agent tells it."""
        return {"kind": self.kind, "detail": self.detail}


def connect(address: Address, timeout_s: float) -> socket.socket:
    """A connected blocking socket, over TLS where the address has it. Raises Failure."""
    until = time.monotonic() + timeout_s
    try:
        sock = address.connect(timeout_s)
    except OSError as error:
        raise _failure(error) from error
    if address.context is None:
        sock.settimeout(timeout_s)
        return sock
    try:
        sock.settimeout(max(until - time.monotonic(), 0.001))
        return address.context.wrap_socket(sock, server_hostname=address.server_name)
    except OSError as error:
        sock.close()
        raise _failure(error) from error


def exchange(sock: socket.socket, request: Request) -> Answer:
    """Send one request on a connection and read its answer. Raises Failure."""
    deadline = time.monotonic() + request.timeout_s
    parser = Parser(request.method)
    try:
        sock.sendall(request.wire())
        while True:
            sock.settimeout(max(deadline - time.monotonic(), 0.001))
            data = sock.recv(65536)
            answer = parser.feed(data)
            if answer is not None:
                return answer
    except ProtocolError as error:
        raise Failure("protocol" if data else "closed_early", str(error)) from error
    except OSError as error:
        raise _failure(error) from error


def _failure(error: OSError) -> Failure:
    kinds: list[tuple[type[OSError], str]] = [
        (ConnectionRefusedError, "refused"),
        (TimeoutError, "timeout"),
        (ssl.SSLError, "protocol"),
    ]
    return Failure(next((kind for cls, kind in kinds if isinstance(error, cls)), "reset"), str(error))


def fetch(requests: list[Request], *, keep_alive: bool) -> list[Json]:
    """The answers in turn, on one connection as far as the server keeps it (and `keep_alive` allows)."""
    sock: socket.socket | None = None
    last: Server | None = None
    addresses: dict[Server, Address] = {}
    answers = []
    for request in requests:
        server = _server(request)
        if sock is not None and not (keep_alive and last == server):
            sock.close()
            sock = None
        reused = sock is not None
        try:
            sock = sock or connect(addresses.setdefault(server, request.address), request.timeout_s)
            answer = exchange(sock, request)
            answers.append({**answer_json(answer), "connection_reused": reused, "error": None})
            kept = answer.keep_alive
        except Failure as failure:
            answers.append({**_NOTHING, "connection_reused": reused, "error": failure.to_json()})
            kept = False
        last = server
        if sock is not None and not kept:
            sock.close()
            sock = None
    if sock is not None:
        sock.close()
    return answers


_NOTHING: Json = {"status": None, "reason": None, "http_version": None, "headers": [], "body": ""}


Server = tuple[str, str, int | None, Tls]


def _server(request: Request) -> Server:
    url = split(request.url)
    return url.scheme, url.host, url.port, request.tls


def answer_json(answer: Answer) -> Json:
    """The answer as JSON; its body in base64."""
    return {
        "status": answer.status,
        "reason": answer.reason,
        "http_version": answer.http_version,
        "headers": [list(pair) for pair in answer.headers],
        "body": base64.b64encode(answer.body).decode(),
    }


def wait(request: Request, expect: Expect, deadline_s: float) -> Json:
    """Ask until the right answer comes or `deadline_s` is over.

    Times in the result count from the call: `connect_s` to the first connection that was accepted,
    `seconds` to the end of the right answer (or of the waiting).
    """
    address = request.address
    started = time.monotonic()
    connect_s: float | None = None
    attempts, pause = 0, FIRST_PAUSE_S
    last: Json = {}
    while (left := deadline_s - (time.monotonic() - started)) > 0:
        attempts += 1
        try:
            with connect(address, left) as sock:
                connect_s = connect_s if connect_s is not None else time.monotonic() - started
                answer = exchange(sock, _within(request, deadline_s - (time.monotonic() - started)))
            last = {"answer": answer_json(answer), "error": None}
            if answer.status == expect.status and expect.body in (None, answer.body):
                return {"ok": True, **_times(attempts, connect_s, started), **last}
        except Failure as failure:
            last = {"answer": None, "error": failure.to_json()}
        time.sleep(pause)
        pause = min(pause * 1.5, LAST_PAUSE_S)
    return {"ok": False, **_times(attempts, connect_s, started), **last}


def _within(request: Request, seconds: float) -> Request:
    timeout_s = max(min(request.timeout_s, seconds), 0.001)
    return Request(request.url, request.method, request.headers, request.body, timeout_s, request.tls)


def _times(attempts: int, connect_s: float | None, started: float) -> Json:
    return {"attempts": attempts, "connect_s": connect_s, "seconds": time.monotonic() - started}


def request_from_json(doc: Any) -> Request:
    """The checked request. Raises SpecError that names the first wrong field."""
    names = ("url", "method", "headers", "body", "timeout_s", "tls")
    request: Request = specs.record(Request, {name: specs.FIELDS[name] for name in names})("request", doc)
    return request
