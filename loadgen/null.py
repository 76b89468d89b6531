"""The null responder: the least a server can do, to find what the generator itself can do.

It answers each read that ends a request head with the same bytes. It reads no headers, so it is right
only for requests without a body that come one at a time, which is what the ceiling asks.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from loadgen.affinity import pinned
from loadgen.errors import SpecError
from loadgen.options import whole
from loadgen.poller import system_poller
from loadgen.stream import TlsStream

READ = 4096


def answer_bytes(body: bytes) -> bytes:
    """The whole answer that carries `body`."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Responder:
    """Serves every connection of a listener with one answer; over TLS where there is a context."""

    def __init__(self, listener: socket.socket, body: bytes, context: ssl.SSLContext | None = None) -> None:
        self._listener = listener
        self._context = context
        self._answer = answer_bytes(body)
        self._poller = system_poller()
        self._socks: dict[int, socket.socket] = {}
        self._recv: dict[int, Callable[[int], bytes]] = {}
        self._send: dict[int, Callable[[bytes], object]] = {}
        listener.setblocking(False)
        self._poller.add(listener.fileno(), write=False)

    def serve(self) -> NoReturn:
        """Serve until the process ends."""
        listening, recv, send, answer = self._listener.fileno(), self._recv, self._send, self._answer
        while True:
            for fd, _ in self._poller.wait(3600):
                if fd == listening:
                    self._accept()
                    continue
                try:
                    data = recv[fd](READ)
                    if data.endswith(b"\r\n\r\n"):
                        send[fd](answer)
                except BlockingIOError:
                    continue
                except OSError:
                    data = b""
                if not data:
                    self._close(fd)

    def _accept(self) -> None:
        sock, _ = self._listener.accept()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        fd = sock.fileno()
        self._socks[fd], self._recv[fd], self._send[fd] = sock, sock.recv, sock.send
        if self._context is not None:
            stream = TlsStream(sock, partial(self._context.wrap_bio, server_side=True))
            self._recv[fd], self._send[fd] = partial(self._shake, fd, stream), stream.send
        self._poller.add(fd, write=False)

    def _shake(self, fd: int, stream: TlsStream, _size: int) -> bytes:
        if not stream.shake():
            raise BlockingIOError
        self._recv[fd] = stream.recv
        return stream.pending()

    def _close(self, fd: int) -> None:
        del self._recv[fd], self._send[fd]
        self._socks.pop(fd).close()


def server_context(certificate: str, key: str) -> ssl.SSLContext:
    """A TLS context of a server with this certificate. Raises SpecError where the files are none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise SpecError(f"{certificate}, {key}: not a certificate and its key: {error.strerror or error}") from error
    return context


def main(argv: list[str]) -> int:
    """`loadgen null`: print the port, then serve."""
    parser = argparse.ArgumentParser(prog="loadgen null", description="Answer every request with the same bytes.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=whole(0, 65535), default=0, help="0: any free port (default)")
    body = parser.add_mutually_exclusive_group()
    body.add_argument("--body", default=None, help="the answer's body")
    body.add_argument("--body-bytes", type=whole(0, 2**30), default=23, help="a body of so many letters (default 23)")
    parser.add_argument("--cert", help="serve TLS with this certificate, and --key")
    parser.add_argument("--key")
    parser.add_argument("--cpu", type=whole(0, 65535), help="pin to this CPU, where the system can")
    options = parser.parse_args(argv)
    if bool(options.cert) != bool(options.key):
        parser.error("--cert and --key go together")
    content = b"x" * options.body_bytes if options.body is None else os.fsencode(options.body)
    try:
        _serve(options, content)
    except SpecError as error:
        parser.error(str(error))
    except OSError as error:
        print(f"loadgen: {options.host}:{options.port}: {error.strerror or error}", file=sys.stderr)
        return 3


def _serve(options: argparse.Namespace, content: bytes) -> NoReturn:
    """Serve until a signal ends the process. Raises SpecError, or OSError where it cannot listen."""
    context = server_context(options.cert, options.key) if options.cert else None
    cpus = () if options.cpu is None else (options.cpu,)
    with pinned(cpus), socket.create_server((options.host, options.port), backlog=1024) as listener:
        print(listener.getsockname()[1], flush=True)
        for number in (signal.SIGTERM, signal.SIGINT):  # the first would mean nothing to PID 1 of a container
            signal.signal(number, lambda *_: os._exit(0))
        Responder(listener, content, context).serve()
