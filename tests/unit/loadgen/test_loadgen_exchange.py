"""What the fast path takes for right: the verified bytes, the value of the Date header aside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.answer import Parser
from loadgen.contract import Expect, LoadSpec, Path
from loadgen.exchange import Exchange, request_bytes, ring
from loadgen.target import split

HEAD = b"HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026 10:00:0%d GMT\r\ncontent-length: 5\r\n\r\n"
FIRST, SECOND = HEAD % 1 + b"hello", HEAD % 2 + b"hello"
DATE = range(FIRST.index(b"Mon"), FIRST.index(b"GMT") + 3)


def learned(raw: bytes = FIRST, *, closes: bool = False) -> Exchange:
    exchange = Exchange("GET", b"", Expect(200, b"hello"))
    exchange.learn(raw, closes=closes)
    return exchange


def test_another_date_is_the_same_answer() -> None:
    exchange = learned()
    assert exchange.begins(SECOND)
    assert exchange.renew(SECOND)
    assert exchange.fast == SECOND


@given(st.integers(0, len(FIRST)))
def test_every_beginning_is_one(length: int) -> None:
    exchange = learned()
    assert exchange.begins(SECOND[:length])
    assert exchange.renew(SECOND[:length]) == (length == len(SECOND))


@given(st.integers(0, len(FIRST) - 1), st.integers(1, 255))
def test_any_other_change_is_not_taken(at: int, change: int) -> None:
    changed = FIRST[:at] + bytes([FIRST[at] ^ change]) + FIRST[at + 1 :]
    taken = learned().begins(changed)
    assert taken == (at in DATE and changed[at : at + 1] != b"\r")


@given(st.binary(min_size=1, max_size=10))
def test_more_bytes_are_not_taken(more: bytes) -> None:
    assert not learned().begins(FIRST + more)


def test_nothing_is_taken_before_an_answer_was_verified() -> None:
    assert not Exchange("GET", b"", Expect()).begins(b"H")


def test_a_closing_server_never_takes_the_hot_loop() -> None:
    exchange = learned(closes=True)
    exchange.renew(SECOND)
    assert exchange.fast is None


@pytest.mark.parametrize(("expect", "kind"), [(Expect(201), "status"), (Expect(200, b"hellO"), "wrong_body")])
def test_wrong_answers(expect: Expect, kind: str) -> None:
    answer = Parser("GET").feed(FIRST)
    assert answer is not None
    wrong = Exchange("GET", b"", expect).wrong(answer)
    assert wrong is not None and wrong[0] == kind
    assert Exchange("GET", b"", Expect(200, b"hello")).wrong(answer) is None


def test_request_bytes() -> None:
    url = split("http://[::1]:8000/x")
    assert request_bytes("GET", url, "/x?y=1") == b"GET /x?y=1 HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n"
    own = (("host", "me"), ("content-length", "2"))
    assert request_bytes("POST", url, "/", own, b"ab") == b"POST / HTTP/1.1\r\nhost: me\r\ncontent-length: 2\r\n\r\nab"
    assert request_bytes("POST", url, "/").endswith(b"Content-Length: 0\r\n\r\n")


def test_paths_form_a_ring() -> None:
    paths = (Path("/a"), Path("/b", Expect(404)), Path("/c"))
    a, b, c = ring(LoadSpec(url="http://h/", paths=paths, expect=Expect(200, b"x")))
    assert (a.next, b.next, c.next) == (b, c, a)
    assert (a.expect, b.expect) == (Expect(200, b"x"), Expect(404))
    (alone,) = ring(LoadSpec(url="http://h/i?j"))
    assert alone.next is alone
    assert alone.request.startswith(b"GET /i?j ")
