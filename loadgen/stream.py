"""How bytes get to and from a server: an address, and TLS as a pair of `recv` and `send`."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from time import monotonic
from typing import Any

from loadgen.contract import Tls
from loadgen.errors import SpecError
from loadgen.target import split

_PIECE = 65536  # plain bytes that one TlsStream.send takes at most


Place = tuple[int, Any]
"""A family of addresses, and an address of it as sockets take it."""


class Address:
    """Where a URL's server is: all addresses of its name until one accepts, then that one alone.

    `context` None: without TLS. `server_name`: to ask for, and to verify.
    """

    def __init__(self, places: list[Place], context: ssl.SSLContext | None, server_name: str) -> None:
        self.places = places
        self.context = context
        self.server_name = server_name

    def connect(self, timeout_s: float) -> socket.socket:
        """A connected blocking socket, without TLS. Raises OSError where no address accepts within `timeout_s`."""
        until, errors = monotonic() + timeout_s, []
        for left, place in zip(range(len(self.places), 0, -1), self.places, strict=True):
            try:
                sock = _connected(place, max(until - monotonic(), 0.001) / left)
            except OSError as error:
                errors.append(error)
                continue
            self.places = [place]
            return sock
        raise next((error for error in errors if isinstance(error, ConnectionRefusedError)), errors[0])


def _connected(place: Place, timeout_s: float) -> socket.socket:
    family, sockaddr = place
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout_s)
        sock.connect(sockaddr)
    except OSError:
        sock.close()
        raise
    return sock


def resolve(url: str, tls: Tls) -> Address:
    """The addresses of the URL's host, in the system's order. Raises SpecError where there is none."""
    parts = split(url, "spec.url")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        found = socket.getaddrinfo(parts.host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SpecError(f"spec.url: {url!r}: {error}") from error
    places: list[Place] = list(dict.fromkeys((family, sockaddr) for family, _, _, _, sockaddr in found))
    context = tls_context(tls) if parts.scheme == "https" else None
    return Address(places, context, tls.server_name or parts.host.partition("%")[0])


def tls_context(tls: Tls) -> ssl.SSLContext:
    """A client context that offers HTTP/1.1 only. Raises SpecError for a CA file that cannot be read."""
    try:
        context = ssl.create_default_context(cafile=tls.ca)
    except (OSError, ssl.SSLError) as error:
        raise SpecError(f"spec.tls.ca: {tls.ca!r}: {error}") from error
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


class TlsStream:
    """TLS over a non-blocking socket, through memory: one system call reads all records that are there.

    `start` and `shake` do the handshake; then `recv` and `send` behave like a socket's.
    """

    def __init__(self, sock: socket.socket, wrap: Callable[[ssl.MemoryBIO, ssl.MemoryBIO], ssl.SSLObject]) -> None:
        self._sock = sock
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self.tls = wrap(self._in, self._out)
        self.kept = b""  # what is to be sent once the handshake is done
        self._unsent = b""
        self._owed = 0  # 1 while a piece's last byte is encrypted, but not yet reported as sent

    def start(self, data: bytes) -> int:
        """Begin the handshake; `data` counts as taken, and is kept to be sent after it."""
        self._advance()
        self._drain()
        self.kept = data
        return len(data)

    def shake(self) -> bool:
        """Read, and go on with the handshake; whether it is complete. Raises ssl.SSLError."""
        self._fill(_PIECE)
        done = self._advance()
        self._drain()
        return done

    def _advance(self) -> bool:
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def send(self, data: bytes) -> int:
        """Bytes taken; raises BlockingIOError where the socket takes none now."""
        self._drain()
        owed, self._owed = self._owed, 0
        piece = data[owed:_PIECE]
        if piece:
            self.tls.write(piece)
            try:
                self._drain()
            except BlockingIOError:
                self._owed = 1
        return owed + len(piece) - self._owed

    def _drain(self) -> None:
        data = self._unsent + self._out.read()
        self._unsent = data
        if data:
            self._unsent = data[self._sock.send(data) :]
        if self._unsent:
            raise BlockingIOError

    def _fill(self, size: int) -> None:
        raw = self._sock.recv(size)
        if raw:
            self._in.write(raw)
        else:
            self._in.write_eof()

    def recv(self, size: int) -> bytes:
        """All decrypted bytes that are there, b"" at the end; BlockingIOError or ssl.SSLError as fits."""
        self._fill(max(size, _PIECE))
        return self.pending()

    def pending(self) -> bytes:
        """The same of the bytes that were read before."""
        parts = []
        try:
            while part := self.tls.read(_PIECE):
                parts.append(part)
                if not self._in.pending:
                    break
        except ssl.SSLWantReadError:
            if not parts:
                raise BlockingIOError from None
        except ssl.SSLEOFError:
            pass  # closed without a TLS goodbye, as many servers do; HTTP's own framing tells what is missing
        return b"".join(parts)
