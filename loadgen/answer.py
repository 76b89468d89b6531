"""The full parser: bytes of a server in, one verified-to-be-HTTP answer out (h11 does the reading)."""

from __future__ import annotations

from dataclasses import dataclass

import h11

from loadgen.errors import ProtocolError

MAX_HEAD = 64 * 1024
MAX_BODY = 16 * 1024 * 1024
MAX_RAW = 4 * 1024 * 1024  # of a longer answer the bytes are not kept


@dataclass(frozen=True)
class Answer:
    """One whole answer. `delimited`: its end was known from its own bytes, not from the connection's end.

    `raw` has all its bytes, or is empty where they are over 4 MiB.
    """

    status: int
    reason: str
    http_version: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    keep_alive: bool
    delimited: bool
    raw: bytes


class Parser:
    """Reads the answer to one request, however its bytes are cut. Memory is bounded by `max_body`."""

    def __init__(self, method: str, max_body: int = MAX_BODY) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        self._http.send(h11.Request(method=method, target="/", headers=[("Host", "-")]))
        self._http.send(h11.EndOfMessage())
        self._max_body = max_body
        self._size = 0
        self._raw = bytearray()
        self._head: h11.Response | None = None
        self._body = bytearray()

    def feed(self, data: bytes) -> Answer | None:
        """Take the next bytes (b"" is the end of the connection); the answer once it is whole.

        Raises ProtocolError for what is not HTTP/1, for bytes after the answer, for an answer cut short
        by the end of the connection, and for a head over 64 KiB or a body over `max_body`.
        """
        self._size += len(data)
        if self._size <= MAX_RAW:
            self._raw += data
        if self._size > 2 * MAX_HEAD + 8 * self._max_body:
            raise ProtocolError("the answer's framing is far larger than its body may be")
        try:
            self._http.receive_data(data)
            return self._read()
        except h11.RemoteProtocolError as error:
            raise ProtocolError(str(error)) from error

    def _read(self) -> Answer | None:
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                return None
            if isinstance(event, h11.Response):
                self._head = event
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > self._max_body:
                    raise ProtocolError(f"body longer than {self._max_body} bytes")
            elif isinstance(event, h11.EndOfMessage):
                return self._finish()
            elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
                raise ProtocolError("the server switched protocols or closed before the answer")

    def _finish(self) -> Answer:
        head = self._head
        assert head is not None  # h11 gives no EndOfMessage before the head
        left, closed = self._http.trailing_data
        if left:
            raise ProtocolError(f"{len(left)} bytes after the answer: {left[:60]!r}")
        return Answer(
            status=head.status_code,
            reason=head.reason.decode("latin-1"),
            http_version=head.http_version.decode("ascii"),
            headers=tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in head.headers),
            body=bytes(self._body),
            keep_alive=self._http.their_state is h11.DONE and not closed,
            delimited=not closed,
            raw=bytes(self._raw) if self._size <= MAX_RAW else b"",
        )
