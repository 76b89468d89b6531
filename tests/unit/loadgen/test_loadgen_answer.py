"""The full parser: whole or byte by byte it says the same, and it never raises anything of its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.answer import Answer, Parser
from loadgen.errors import ProtocolError

BODY = b'{"item_id":42,"q":null}'
Outcome = Answer | str | None


def outcome(pieces: list[bytes], method: str = "GET", max_body: int = 1000) -> Outcome:
    """What comes of the pieces: the answer, the word `error`, or None while it is incomplete."""
    parser = Parser(method, max_body)
    try:
        for i, piece in enumerate(pieces):
            answer = parser.feed(piece)
            if answer is not None:
                return "error" if any(pieces[i + 1 :]) else answer
    except ProtocolError:
        return "error"
    return None


def one_by_one(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


headers = st.sampled_from(
    [
        b"content-length: 23",
        b"content-length: 5",
        b"Content-Length: 0",
        b"transfer-encoding: chunked",
        b"connection: close",
        b"x: y",
        b"date: Mon, 30 Nov 2026 10:00:00 GMT",
        b"broken",
        b": empty",
    ]
)
status_lines = st.sampled_from(
    [b"HTTP/1.1 200 OK", b"HTTP/1.0 200 OK", b"HTTP/1.1 204 No", b"HTTP/1.1 100 Continue", b"HTTP/1.1 200", b"HTTP/9 x"]
)
bodies = st.sampled_from(
    [b"", BODY, BODY[:5], b"5\r\nhello\r\n0\r\n\r\n", b"5\r\nhel", b"5;a=b\r\nhello\r\n0\r\nt: u\r\n\r\n", b"z\r\n"]
)
answers = st.builds(
    lambda line, lines, body: b"\r\n".join([line, *lines, b"", b""]) + body,
    status_lines,
    st.lists(headers, max_size=3),
    bodies,
)


@given(st.lists(answers | st.binary(max_size=40), min_size=1, max_size=3).map(b"".join).filter(bool))
def test_cuts_do_not_matter(data: bytes) -> None:
    assert outcome([data]) == outcome(one_by_one(data))


@given(st.binary(max_size=200), st.sampled_from(["GET", "HEAD"]))
def test_any_bytes_are_an_answer_or_a_protocol_error(data: bytes, method: str) -> None:
    outcome([data, b""], method)


def test_a_chunked_answer_with_trailers() -> None:
    raw = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx: y\r\n\r\n"
    answer = outcome([raw])
    assert isinstance(answer, Answer)
    assert (answer.status, answer.body, answer.keep_alive, answer.delimited) == (200, b"hello", True, True)
    assert answer.raw == raw


def test_an_answer_that_the_end_of_the_connection_ends() -> None:
    answer = outcome([b"HTTP/1.0 200 OK\r\n\r\nab", b"cd", b""])
    assert isinstance(answer, Answer)
    assert (answer.body, answer.keep_alive, answer.delimited) == (b"abcd", False, False)


@pytest.mark.parametrize(
    "pieces",
    [
        [b""],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab", b""],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabc"],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n" + b"x" * 1001],
        [b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000],
        [b"HTTP/1.1 101 Switching\r\n\r\n"],
    ],
)
def test_protocol_errors(pieces: list[bytes]) -> None:
    assert outcome(pieces) == "error"


def test_memory_for_framing_is_bounded() -> None:
    parser = Parser("GET", max_body=10)
    parser.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    with pytest.raises(ProtocolError):
        for _ in range(1000):
            parser.feed(b"1;" + b"x" * 1000 + b"\r\ny\r\n")
