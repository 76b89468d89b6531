"""Non-blocking connections to one address, by file descriptor: opened, read, written, closed."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from errno import EINPROGRESS, EMFILE, ENFILE, ENOTCONN
from functools import partial

from loadgen.errors import EngineError
from loadgen.poller import system_poller
from loadgen.stream import Address, TlsStream


class Wires:
    """Per file descriptor a `recv` and a `send` that hot loops can call without knowing any state.

    `recv` of a connection that has something else to do first (finish its handshake, send what did not
    fit) is a function that does it. Both raise BlockingIOError while there is nothing to be done.
    """

    def __init__(self, address: Address, timeout_s: float) -> None:
        """Where the server's name has several addresses, the first connection is made now, to find the one that accepts
        within `timeout_s`. Where none does, `open` tries the first."""
        self.poller = system_poller()
        self.recv: dict[int, Callable[[int], bytes]] = {}
        self.send: dict[int, Callable[[bytes], int]] = {}
        self.unfinished: set[int] = set()  # connections whose request is not sent to its end
        self.opened = 0
        self._address = address
        self._socks: dict[int, socket.socket] = {}
        self._streams: dict[int, TlsStream] = {}
        self._session: ssl.SSLSession | None = None
        self._made: socket.socket | None = None  # a connection that `open` is to take
        if len(address.places) > 1:
            with suppress(OSError):
                self._made = address.connect(timeout_s)

    def open(self) -> int:
        """Begin a connection; its descriptor. Raises OSError where that fails at once, EngineError where this process
        may have no more connections."""
        self.opened += 1
        sock, self._made = self._made or self._begun(), None
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        fd = sock.fileno()
        self._socks[fd] = sock
        self.recv[fd], self.send[fd] = sock.recv, sock.send
        if self._address.context is not None:
            self._wrap(fd, sock, self._address.context)
        self.poller.add(fd, write=False)
        return fd

    def _begun(self) -> socket.socket:
        family, sockaddr = self._address.places[0]
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            if error.errno not in (EMFILE, ENFILE):
                raise
            raise EngineError(
                f"no more than {len(self._socks)} connections: {error.strerror}; see ulimit -n"
            ) from error
        sock.setblocking(False)
        code = sock.connect_ex(sockaddr)
        if code not in (0, EINPROGRESS):
            sock.close()
            raise OSError(code, os.strerror(code))
        return sock

    def _wrap(self, fd: int, sock: socket.socket, context: ssl.SSLContext) -> None:
        wrap = partial(context.wrap_bio, server_hostname=self._address.server_name, session=self._session)
        stream = self._streams[fd] = TlsStream(sock, wrap)
        self.recv[fd], self.send[fd] = partial(self._shake, fd, stream), stream.start

    def _shake(self, fd: int, stream: TlsStream, _size: int) -> bytes:
        if not stream.shake():
            raise BlockingIOError
        self.recv[fd], self.send[fd] = stream.recv, stream.send
        self.push(fd, stream.kept)
        return stream.pending()

    def push(self, fd: int, data: bytes) -> None:
        """Send `data` now, or as soon as the connection takes it. Raises OSError."""
        try:
            sent = self.send[fd](data)
        except OSError as error:
            if not isinstance(error, BlockingIOError) and error.errno != ENOTCONN:
                raise
            sent = 0
        if sent != len(data):
            self.unsent(fd, data[sent:])

    def unsent(self, fd: int, rest: bytes) -> None:
        """Send `rest` once the connection takes it."""
        self.unfinished.add(fd)
        self.poller.change(fd, write=True)
        self.recv[fd] = partial(self._flush, fd, rest, self.recv[fd])

    def _flush(self, fd: int, rest: bytes, recv: Callable[[int], bytes], size: int) -> bytes:
        self.poller.change(fd, write=False)
        self.unfinished.discard(fd)
        self.recv[fd] = recv
        self.push(fd, rest)
        return recv(size)

    def handshake(self, fd: int) -> bool | None:
        """Whether a connection resumed a TLS session, None without TLS. Call it after its first answer:
        only then is the session there that later connections resume."""
        stream = self._streams.get(fd)
        if stream is None:
            return None
        self._session = stream.tls.session
        return bool(stream.tls.session_reused)

    def drop(self, fd: int) -> None:
        """Close a connection."""
        del self.recv[fd], self.send[fd]
        self._streams.pop(fd, None)
        self.unfinished.discard(fd)
        self._socks.pop(fd).close()

    def close(self) -> None:
        """Close every connection and the poller."""
        for fd in list(self._socks):
            self.drop(fd)
        if self._made is not None:
            self._made.close()
        self.poller.close()
