"""A request as bytes, and what its right answer looks like, byte for byte."""

from __future__ import annotations

import re

from loadgen.answer import Answer
from loadgen.contract import ErrorKind, Expect, LoadSpec
from loadgen.target import Url, split, target

_DATE = re.compile(rb"\r\ndate:[ \t]*([^\r\n]*)\r\n", re.IGNORECASE)


def request_bytes(
    method: str, url: Url, path: str, headers: tuple[tuple[str, str], ...] = (), body: bytes = b""
) -> bytes:
    """The whole HTTP/1.1 request; `path` is its target. Host and Content-Length are added unless `headers` has them.

    Raises UnicodeEncodeError for what `loadgen.target` would have refused.
    """
    names = {name.lower() for name, _ in headers}
    lines = [f"{method} {path} HTTP/1.1"]
    if "host" not in names:
        lines.append(f"Host: {url.host_field}")
    lines += [f"{name}: {value}" for name, value in headers]
    if (body or method in ("POST", "PUT", "PATCH")) and not names & {"content-length", "transfer-encoding"}:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Exchange:
    """One request and its answer, in a ring with the other requests that a connection sends in turn.

    `good` holds the bytes of the latest answer that the full parser verified; an answer that equals
    them, the value of its Date header aside, is right without being parsed. `fast` is the same, or None
    where the server closes after it, and is all that the hot loop compares with.
    """

    __slots__ = (
        "_hi",
        "_lo",
        "closes",
        "expect",
        "fast",
        "good",
        "hits",
        "method",
        "next",
        "request",
        "size",
    )

    def __init__(self, method: str, request: bytes, expect: Expect) -> None:
        self.method = method
        self.request = request
        self.size = len(request)
        self.expect = expect
        self.next = self
        self.hits = 0  # answers of the hot loop since the counts were last reset
        self.closes = False
        self.good: bytes | None = None
        self.fast: bytes | None = None
        self._lo = self._hi = 0

    def wrong(self, answer: Answer) -> tuple[ErrorKind, str] | None:
        """The kind of error and its detail, or None for the expected answer."""
        if answer.status != self.expect.status:
            return "status", f"status {answer.status}, expected {self.expect.status}: {answer.body[:200]!r}"
        if self.expect.body is None or answer.body == self.expect.body:
            return None
        return "wrong_body", (
            f"{len(answer.body)} bytes {answer.body[:200]!r}, "
            f"expected {len(self.expect.body)} bytes {self.expect.body[:200]!r}"
        )

    def learn(self, raw: bytes, *, closes: bool) -> None:
        """Take the bytes of a verified answer as the pattern of the answers to come."""
        date = _DATE.search(raw, 0, raw.find(b"\r\n\r\n") + 2)
        self._lo, self._hi = date.span(1) if date else (len(raw), len(raw))
        self.good = raw
        self.closes = closes
        self.fast = None if closes else raw

    def begins(self, data: bytes) -> bool:
        """Whether `data` is the verified answer or the beginning of it, the Date value aside."""
        good = self.good
        if good is None or len(data) > len(good):
            return False
        lo, hi = self._lo, self._hi
        if data[:lo] != good[: min(lo, len(data))] or data[hi:] != good[hi : len(data)]:
            return False
        return b"\r" not in data[lo:hi]

    def renew(self, received: bytes) -> bool:
        """Of bytes for which `begins` holds: whether they are a whole answer; if so it is the pattern now."""
        if self.good is None or len(received) < len(self.good):
            return False
        self.good = received
        self.fast = None if self.closes else received
        return True


def ring(spec: LoadSpec) -> list[Exchange]:
    """The exchanges of a spec, each linked to the next and the last to the first."""
    url = split(spec.url)
    targets = [(target(p.path), p.expect or spec.expect) for p in spec.paths] or [(url.target, spec.expect)]
    exchanges = [
        Exchange(spec.method, request_bytes(spec.method, url, path, spec.headers, spec.body), expect)
        for path, expect in targets
    ]
    for here, after in zip(exchanges, exchanges[1:] + exchanges[:1], strict=True):
        here.next = after
    return exchanges
