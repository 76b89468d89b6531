"""Single requests over blocking sockets: `fetch` for whole answers, `wait` for the first right one."""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import dataclass
from functools import cached_property

from msgspec.structs import replace

from loadgen.answer import Answer, Parser
from loadgen.contract import Answered, ErrorKind, Expect, Problem, Request, Tls, Waited
from loadgen.errors import ProtocolError
from loadgen.exchange import request_bytes
from loadgen.stream import Address, resolve
from loadgen.target import split

FIRST_PAUSE_S, LAST_PAUSE_S = 0.005, 0.05


@dataclass(frozen=True)
class Outgoing:
    """A request on its way: where it goes is found out once."""

    request: Request

    @cached_property
    def address(self) -> Address:
        """Where it goes. Raises SpecError."""
        return resolve(self.request.url, self.request.tls)

    def wire(self) -> bytes:
        """The bytes to send."""
        url = split(self.request.url)
        return request_bytes(self.request.method, url, url.target, self.request.headers, self.request.body)

    def within(self, seconds: float) -> Outgoing:
        """The same with at most so much time."""
        return Outgoing(replace(self.request, timeout_s=max(min(self.request.timeout_s, seconds), 0.001)))


class Failure(Exception):
    """No answer: why."""

    def __init__(self, kind: ErrorKind, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail

    @property
    def problem(self) -> Problem:
        """The failure as the agent tells it."""
        return Problem(self.kind, self.detail)


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


def exchange(sock: socket.socket, outgoing: Outgoing) -> Answer:
    """Send one request on a connection and read its answer. Raises Failure."""
    deadline = time.monotonic() + outgoing.request.timeout_s
    parser = Parser(outgoing.request.method)
    try:
        sock.sendall(outgoing.wire())
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
    kinds: list[tuple[type[OSError], ErrorKind]] = [
        (ConnectionRefusedError, "refused"),
        (TimeoutError, "timeout"),
        (ssl.SSLError, "protocol"),
    ]
    return Failure(next((kind for cls, kind in kinds if isinstance(error, cls)), "reset"), str(error))


def fetch(requests: list[Outgoing], *, keep_alive: bool) -> list[Answered]:
    """The answers in turn, on one connection as far as the server keeps it (and `keep_alive` allows)."""
    sock: socket.socket | None = None
    last: Server | None = None
    addresses: dict[Server, Address] = {}
    answers = []
    for outgoing in requests:
        server = _server(outgoing.request)
        if sock is not None and not (keep_alive and last == server):
            sock.close()
            sock = None
        reused = sock is not None
        try:
            sock = sock or connect(addresses.setdefault(server, outgoing.address), outgoing.request.timeout_s)
            answer = exchange(sock, outgoing)
            answers.append(_answered(answer, reused=reused))
            kept = answer.keep_alive
        except Failure as failure:
            answers.append(Answered(connection_reused=reused, error=failure.problem))
            kept = False
        last = server
        if sock is not None and not kept:
            sock.close()
            sock = None
    if sock is not None:
        sock.close()
    return answers


Server = tuple[str, str, int | None, Tls]


def _server(request: Request) -> Server:
    url = split(request.url)
    return url.scheme, url.host, url.port, request.tls


def _answered(answer: Answer, *, reused: bool = False) -> Answered:
    return Answered(
        status=answer.status,
        reason=answer.reason,
        http_version=answer.http_version,
        headers=tuple(answer.headers),
        body=answer.body,
        connection_reused=reused,
    )


def wait(outgoing: Outgoing, expect: Expect, deadline_s: float) -> Waited:
    """Ask until the right answer comes or `deadline_s` is over. Raises SpecError where there is nowhere to ask."""
    address = outgoing.address
    started = time.monotonic()
    connect_s: float | None = None
    attempts, pause = 0, FIRST_PAUSE_S
    answered: Answered | None = None
    problem: Problem | None = None
    right = False
    while not right and (left := deadline_s - (time.monotonic() - started)) > 0:
        attempts += 1
        try:
            with connect(address, left) as sock:
                connect_s = connect_s if connect_s is not None else time.monotonic() - started
                answer = exchange(sock, outgoing.within(deadline_s - (time.monotonic() - started)))
            answered, problem = _answered(answer), None
            right = answer.status == expect.status and expect.body in (None, answer.body)
        except Failure as failure:
            answered, problem = None, failure.problem
        if not right:
            time.sleep(pause)
            pause = min(pause * 1.5, LAST_PAUSE_S)
    return Waited(
        ok=right,
        attempts=attempts,
        connect_s=connect_s,
        seconds=time.monotonic() - started,
        answer=answered,
        error=problem,
    )
