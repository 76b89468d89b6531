"""Hostile and odd servers: errors are counted by kind, memory is bounded, the slice ends on time."""

from __future__ import annotations

import base64
import resource
import socket
from itertools import pairwise
from typing import Any

import pytest
from documents import Json, load_document, loaded
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import (
    BODY,
    Behaviour,
    answer,
    answering,
    early,
    endless,
    half_close,
    once,
    reset_after,
    served,
    silent,
    silent_end,
)

from loadgen.contract import Expect, LoadSpec

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\n"

# what a server does, and the kinds of error that may be counted for it
HOSTILE: dict[str, tuple[Behaviour, set[str]]] = {
    "drips an answer too slowly": (answering(*(b"%c" % c for c in answer()), pause_s=0.02), {"timeout"}),
    "sends garbage": (answering(b"\x00\x16\x03 this is not HTTP\r\n\r\n"), {"protocol"}),
    "closes before the length is reached": (once(answer()[:-1]), {"closed_early"}),
    "sends more than the length": (answering(answer() + b"more"), {"protocol"}),
    "sends two answers": (answering(answer() * 2), {"protocol"}),
    "never ends the headers": (endless(HEAD, b"x-header: " + b"y" * 90 + b"\r\n"), {"protocol"}),
    "never ends a header line": (endless(HEAD + b"x-header: ", b"y"), {"protocol"}),
    "never ends the body": (endless(CHUNKED, b"5\r\nhello\r\n"), {"protocol", "timeout"}),
    "never ends a chunk's size line": (endless(CHUNKED + b"5;", b"x"), {"protocol"}),
    "never ends the trailers": (endless(CHUNKED + b"0\r\n", b"x-trailer: " + b"y" * 90 + b"\r\n"), {"protocol"}),
    "has a negative length": (answering(HEAD + b"content-length: -1\r\n\r\n"), {"protocol"}),
    "has two lengths": (answering(HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\nabc"), {"protocol"}),
    "switches protocols": (answering(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n"), {"protocol"}),
    "half-closes at once": (half_close, {"closed_early"}),
    "closes without a word": (silent_end, {"closed_early", "reset"}),
    "resets in the middle": (reset_after(answer()[:50]), {"reset"}),
    "never answers": (silent, {"timeout"}),
    "answers with another status": (answering(answer(status="503 Busy")), {"status"}),
    "answers with another body": (answering(answer(b"x" * len(BODY))), {"wrong_body"}),
    "answers with a longer body": (answering(answer(BODY + b" ")), {"wrong_body"}),
}

TWO_CHUNKS = CHUNKED + b"5\r\n" + BODY[:5] + b"\r\n12\r\n" + BODY[5:] + b"\r\n0\r\nx-trailer: y\r\n\r\n"

ODD: dict[str, Behaviour] = {
    "head and body apart": answering(answer()[: -len(BODY)], BODY),
    "byte by byte": answering(*(b"%c" % c for c in answer())),
    "chunked, with a trailer": answering(TWO_CHUNKS),
    "an informational answer first": answering(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + answer()),
    "closes after each, and says so": once(answer(BODY, "connection: close")),
    "closes after each without saying so": once(answer()),
    "HTTP/1.0": once(answer(version="1.0")),
    "ended by the connection's end": once(b"HTTP/1.0 200 OK\r\n\r\n" + BODY),
    "keeps an HTTP/1.0 connection": answering(answer(BODY, "connection: keep-alive", version="1.0")),
}


TRIES = 10  # on a busy machine a server of these may not get to run in one short slice


def slice_of(url: str, **fields: Any) -> Json:
    settings: dict[str, Any] = {
        "connections": 2,
        "duration_s": 0.2,
        "timeout_s": 5,
        "expect": {"status": 200, "body": base64.b64encode(BODY).decode()},
    }
    return load_document({"url": url, **settings, **fields})


def with_answers(url: str, **fields: Any) -> Json:
    """A slice that has right answers, if any of ten has."""
    return next(filter(lambda r: r["requests"], (slice_of(url, **fields) for _ in range(TRIES))))


def with_errors(url: str, **fields: Any) -> Json:
    """A slice that has errors, if any of ten has."""
    return next(filter(lambda r: any(r["errors"].values()), (slice_of(url, **fields) for _ in range(TRIES))))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_server_is_counted_and_left_in_time(name: str) -> None:
    behaviour, kinds = HOSTILE[name]
    with served(behaviour) as url:
        result = with_errors(url, timeout_s=0.1 if "timeout" in kinds else 5)
    counted = {kind for kind, count in result["errors"].items() if count}
    assert result["requests"] == 0
    assert counted <= kinds
    assert result["first_error"]["kind"] in kinds
    assert result["elapsed_s"] < 5  # 0.2 s of slice; a generator that a server can hold up never ends
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 512 * 1024


@pytest.mark.parametrize("name", ODD)
def test_odd_but_right_server_has_no_errors(name: str) -> None:
    with served(ODD[name]) as url:
        result = with_answers(url)
    assert result["requests"] > 0
    assert not any(result["errors"].values()), result["first_error"]
    assert result["latency"]["count"] == result["requests"]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, len(answer()) - 1), max_size=6), st.booleans())
def test_cuts_of_an_answer_do_not_matter(at: list[int], chunked: bool) -> None:
    whole = TWO_CHUNKS if chunked else answer()
    cuts = [0, *sorted(at), len(whole)]
    with served(answering(*(whole[a:b] for a, b in pairwise(cuts)))) as url:
        result = with_answers(url, duration_s=0.03)
    assert not any(result["errors"].values()), result["first_error"]


def test_reconnects_of_a_closing_server_are_counted() -> None:
    with served(ODD["closes after each, and says so"]) as url:
        result = with_answers(url)
    connections = result["connections"]
    assert abs(connections["reconnects"] - result["requests"]) <= 2
    assert connections["per_request"] == pytest.approx(connections["reconnects"] / result["requests"])


def test_a_kept_connection_that_closes_is_asked_again() -> None:
    with served(ODD["closes after each without saying so"]) as url:
        result = with_answers(url)
    assert result["connections"]["resent"] >= result["requests"] - 4


def test_a_post_is_never_sent_twice() -> None:
    with served(ODD["closes after each without saying so"]) as url:
        result = with_errors(url, method="POST")
    assert result["connections"]["resent"] == 0
    assert result["errors"]["closed_early"] + result["errors"]["reset"] > 0


def test_refused_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    result = slice_of(f"http://127.0.0.1:{port}/")
    assert result["errors"]["refused"] > 2
    assert result["requests"] == 0
    result = slice_of(f"http://127.0.0.1:{port}/", loop="open", rate=200)
    assert result["errors"] == {**dict.fromkeys(result["errors"], 0), "refused": 40}


def test_answers_without_a_request_are_seen_by_an_open_loop() -> None:
    with served(early) as url:
        result = with_errors(url, loop="open", rate=1, warmup_s=0.1)
    assert result["errors"]["protocol"] > 0


def test_answers_before_the_request_do_not_stop_a_closed_loop() -> None:
    with served(early) as url:
        result = slice_of(url)
    assert result["elapsed_s"] < 5


def test_a_body_of_many_tiny_chunks_is_read() -> None:
    body = b"x" * 20_000
    with served(answering(CHUNKED + b"1\r\nx\r\n" * len(body) + b"0\r\n\r\n")) as url:
        expect = Expect(200, body)
        result = loaded(LoadSpec(url=url, duration_s=1, expect=expect, timeout_s=10))
    assert result["requests"] > 0
    assert not any(result["errors"].values())


@pytest.mark.parametrize(("method", "status"), [("HEAD", "200 OK"), ("GET", "204 No Content"), ("GET", "304 Same")])
def test_answers_without_a_body(method: str, status: str) -> None:
    head = f"HTTP/1.1 {status}\r\n" + ("content-length: 23\r\n" if method == "HEAD" else "") + "\r\n"
    with served(answering(head.encode())) as url:
        result = with_answers(url, method=method, expect={"status": int(status[:3]), "body": ""})
    assert result["requests"] > 0
    assert not any(result["errors"].values()), result["first_error"]
