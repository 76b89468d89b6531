"""Servers on loopback that do what a script says, one thread a connection."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Behaviour = Callable[[socket.socket], None]

BODY = b'{"item_id":42,"q":null}'


def answer(body: bytes = BODY, *headers: str, status: str = "200 OK", version: str = "1.1") -> bytes:
    """An answer with its Content-Length."""
    lines = [f"HTTP/{version} {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def request_of(conn: socket.socket) -> bytes:
    """The next request without a body; b"" at the end of the connection."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        more = conn.recv(65536)
        if not more:
            return b""
        data += more
    return data


def answering(*pieces: bytes, pause_s: float = 0.0) -> Behaviour:
    """Answer every request with the pieces, each in a segment of its own."""

    def serve(conn: socket.socket) -> None:
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while request_of(conn):
            for piece in pieces:
                conn.sendall(piece)
                if pause_s:
                    time.sleep(pause_s)

    return serve


def once(*pieces: bytes) -> Behaviour:
    """Answer one request with the pieces, then close in good order."""

    def serve(conn: socket.socket) -> None:
        request_of(conn)
        for piece in pieces:
            conn.sendall(piece)
        conn.shutdown(socket.SHUT_WR)
        conn.recv(1)

    return serve


def endless(head: bytes, line: bytes) -> Behaviour:
    """Answer a request with `head` and then `line` again and again."""

    def serve(conn: socket.socket) -> None:
        request_of(conn)
        conn.sendall(head)
        while True:
            conn.sendall(line * 1000)

    return serve


def reset_after(data: bytes) -> Behaviour:
    """Send `data` for an answer, then reset the connection."""

    def serve(conn: socket.socket) -> None:
        request_of(conn)
        conn.sendall(data)
        time.sleep(0.01)  # a reset would overtake data that the client has not read yet
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return serve


def silent(conn: socket.socket) -> None:
    """Read, and never answer."""
    while conn.recv(65536):
        pass


def silent_end(_conn: socket.socket) -> None:
    """Close at once."""


def half_close(conn: socket.socket) -> None:
    """Say at once that nothing will be sent, and read on."""
    conn.shutdown(socket.SHUT_WR)
    silent(conn)


def early(conn: socket.socket) -> None:
    """Answer before there is a request."""
    conn.sendall(answer())
    silent(conn)


def echo(conn: socket.socket) -> None:
    """Answer every request with its own body, once the whole of it is there."""
    data = b""
    while True:
        head, end, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0) if end else 0
        if end and len(body) >= length:
            conn.sendall(answer(body[:length]))
            data = body[length:]
            continue
        more = conn.recv(65536)
        if not more:
            return
        data += more


@contextmanager
def served(behaviour: Behaviour, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a server that treats every connection so."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        threading.Thread(target=converse_all, args=(listener, behaviour, context), daemon=True).start()
        yield f"{'https' if context else 'http'}://127.0.0.1:{listener.getsockname()[1]}/"


def converse_all(listener: socket.socket, behaviour: Behaviour, context: ssl.SSLContext | None = None) -> None:
    """Treat every connection so, until the listener is closed."""
    with suppress(OSError):
        while True:
            conn, _ = listener.accept()
            threading.Thread(target=_converse, args=(conn, behaviour, context), daemon=True).start()


def _converse(conn: socket.socket, behaviour: Behaviour, context: ssl.SSLContext | None) -> None:
    with suppress(OSError), conn if context is None else context.wrap_socket(conn, server_side=True) as stream:
        behaviour(stream)
