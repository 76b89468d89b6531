"""A warm-up ends when every connection has had an answer, or at its bound."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest
from documents import Json, load_document
from scripted import Behaviour, answer, answering, once, served, silent

from loadgen.slice import LONGER

LATE_S = 0.2
TRIES = 10


def slow_at_first(others: Behaviour) -> Behaviour:
    """Let a connection wait before its first answer."""

    def serve(conn: socket.socket) -> None:
        time.sleep(LATE_S)
        others(conn)

    return serve


def loaded(url: str, **fields: Any) -> Json:
    return load_document({"url": url, "connections": 4, "duration_s": 0.2, "warmup_s": 0.05, **fields})


@pytest.mark.parametrize("others", [answering(answer()), answering(answer(status="503 Busy")), once(answer())])
def test_a_warm_up_waits_for_the_first_answer_of_every_connection(others: Behaviour) -> None:
    with served(slow_at_first(others)) as url:
        assert loaded(url)["warmup_s"] >= LATE_S


def test_a_warm_up_waits_no_longer_than_its_bound() -> None:
    with served(silent) as url:
        found = loaded(url)
    assert found["warmup_s"] >= 0.05 * (1 + LONGER) - 0.001
    assert found["unanswered"]["connections"] == 4


FIXED: dict[str, dict[str, Any]] = {
    "none": {"warmup_s": 0},
    "open loop": {"loop": "open", "rate": 100},
    "two processes": {"processes": 2},
}


@pytest.mark.parametrize("way", FIXED)
def test_a_warm_up_of_fixed_length_waits_for_nobody(way: str) -> None:
    with served(silent) as url:
        lengths = [loaded(url, timeout_s=0.3, **FIXED[way])["warmup_s"]]
        while lengths[-1] >= 0.05 * (1 + LONGER) and len(lengths) < TRIES:  # it may have had to wait for its CPU
            lengths.append(loaded(url, timeout_s=0.3, **FIXED[way])["warmup_s"])
    assert min(lengths) < 0.05 * (1 + LONGER)


def test_a_fast_server_costs_no_more_than_the_least() -> None:
    with served(answering(answer())) as url:
        assert min(loaded(url)["warmup_s"] for _ in range(TRIES)) < 0.05 * (1 + LONGER)
