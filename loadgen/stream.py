"""How bytes get to and from a server: an address, and TLS as a pair of `recv` and `send`."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from loadgen.errors import SpecError
from loadgen.spec import Tls

_PIECE = 65536  # plain bytes that one TlsStream.send takes at most


@dataclass(frozen=True)
class Address:
    """Where to connect; `context` None: without TLS."""

    family: int
    sockaddr: Any
    context: ssl.SSLContext | None
    server_name: str | None


def resolve(url: str, tls: Tls) -> Address:
    """The first address of the URL's host. Raises SpecError where there is none."""
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        raise SpecError(f"spec.url: {url!r}: {error}") from error
    context = tls_context(tls) if parts.scheme == "https" else None
    return Address(found[0][0], found[0][4], context, server_name(parts, tls))


def server_name(parts: SplitResult, tls: Tls) -> str | None:
    """The name to ask for and to verify: the given one, else the URL's host."""
    return tls.server_name or parts.hostname


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
