"""Requests that are still open when a slice ends: no error and no latency tells of them, so other figures do."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from documents import Json, load_document
from scripted import BODY, Behaviour, answer, answering, once, reset_after, served, silent

from loadgen import cli

TRIES = 10  # on a busy machine a server that answers may not get to run in one short slice

WAYS: dict[str, dict[str, Any]] = {
    "closed loop": {"warmup_s": 0.1},
    "closed loop without a warm-up": {},
    "two processes": {"warmup_s": 0.1, "processes": 2},
    "open loop, hung in the warm-up": {"warmup_s": 0.3, "loop": "open", "rate": 400},
}


@contextmanager
def answering_first(connections: int, others: Behaviour) -> Iterator[tuple[str, Callable[[], None]]]:
    """The URL of a server that answers on so many connections and treats the others so, and how to count anew."""
    numbers = [count()]

    def serve(conn: socket.socket) -> None:
        (answering(answer()) if next(numbers[0]) < connections else others)(conn)

    with served(serve) as url:
        yield url, lambda: numbers.__setitem__(0, count())


def found(url: str, anew: Callable[[], None], unanswered: int, **fields: Any) -> Json:
    """A slice of four connections in which so many had no answer and others had, if any of ten is one."""
    results = []
    for _ in range(TRIES):
        anew()
        doc = {"url": url, "connections": 4, "duration_s": 0.2, **fields}
        results.append(load_document(doc))
        if results[-1]["requests"] and results[-1]["unanswered"]["connections"] == unanswered:
            return results[-1]
    raise AssertionError([(result["requests"], result["unanswered"]) for result in results])


@pytest.mark.parametrize("way", WAYS)
def test_connections_that_are_never_answered_are_counted(way: str) -> None:
    with answering_first(1, silent) as (url, anew):
        result = found(url, anew, 3, **WAYS[way], timeout_s=1)
    assert not any(result["errors"].values()) or way.startswith("open")  # there each request gets its end, if late
    assert result["unanswered"]["oldest_us"] >= result["elapsed_s"] * 1e6


@pytest.mark.parametrize("others", [reset_after(b""), reset_after(answer()[:20]), once(answer()[:20])])
def test_a_connection_that_is_opened_again_without_an_answer_is_the_same(others: Behaviour) -> None:
    with answering_first(1, others) as (url, anew):
        result = found(url, anew, 3, warmup_s=0.1)
    assert sum(result["errors"].values()) > 0


def test_a_connection_that_times_out_in_the_stretch_is_the_same() -> None:
    with answering_first(1, silent) as (url, anew):
        result = found(url, anew, 3, timeout_s=0.05)
    assert result["errors"]["timeout"] >= 3
    assert result["unanswered"]["oldest_us"] < result["elapsed_s"] * 1e6  # the request of now is another one


FAIR: dict[str, Behaviour] = {
    "keeps connections": answering(answer()),
    "closes after each": once(answer(BODY, "connection: close")),
    "closes after each without saying so": once(answer()),
    "answers wrongly": answering(answer(status="503 Busy")),
}


@pytest.mark.parametrize("name", FAIR)
@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_answers_everyone_leaves_none(name: str, way: str) -> None:
    with served(FAIR[name]) as url:
        status = 503 if name == "answers wrongly" else 200
        result = found(url, lambda: None, 0, **WAYS[way], expect={"status": status})
    assert not any(result["errors"].values()), result["first_error"]


def test_nobody_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    doc = {"url": f"http://127.0.0.1:{port}/", "connections": 3, "duration_s": 0.1, "warmup_s": 0.05}
    assert load_document(doc)["unanswered"]["connections"] == 3


def test_few_requests_of_an_open_loop_accuse_nobody() -> None:
    with served(answering(answer())) as url:
        found(url, lambda: None, 0, loop="open", rate=5, connections=16)


def test_the_command_says_so_and_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    with answering_first(1, silent) as (url, _):
        assert cli.main([url, "-c", "3", "-d", "0.5", "-w", "0.1"]) == 1
    printed = capsys.readouterr().out
    assert "errors       none" in printed
    assert "unanswered   2 of 3 connections while it counted; the oldest request was open for" in printed
