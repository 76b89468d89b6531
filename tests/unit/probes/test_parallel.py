"""Side by side work keeps its order, raises what it raised, and never holds up Ctrl-C."""

from __future__ import annotations

import threading

import pytest

from orchestrator.probes.parallel import parallel


def test_results_come_in_the_order_of_the_items() -> None:
    gate = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            gate.wait(5)
        else:
            gate.set()
        return item * 10

    assert parallel(work, [0, 1, 2], 2) == [0, 10, 20]


def test_the_first_error_is_raised_after_the_others_ended() -> None:
    ended: list[int] = []

    def work(item: int) -> None:
        if item == 1:
            raise ValueError("one")
        ended.append(item)

    with pytest.raises(ValueError, match="one"):
        parallel(work, [0, 1, 2, 3], 2)
    assert sorted(ended) == [0, 2, 3]


def test_nothing_to_do() -> None:
    assert parallel(lambda item: item, [], 3) == []
