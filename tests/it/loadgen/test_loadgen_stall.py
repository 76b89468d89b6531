"""A known stall: the open loop finds the distribution that can be computed, the closed loop does not.

What is computed is exact on any machine: from the schedule, and from the times at which the server really
answered, which it writes down; it never answers earlier than its stalls allow.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import pytest
import stalling
from documents import Json

from loadgen.contract import LoadSpec, encode
from loadgen.slice import run

RATE, SECONDS = 400.0, 2.5
SCHEDULE = [i / RATE for i in range(int(RATE * SECONDS))]
PERCENTILES = (50, 90, 99)


def measured(loop: Literal["open", "closed"]) -> tuple[Json, list[float]]:
    """The result of a slice, and the times of the server's answers in seconds since its beginning."""
    begin = time.perf_counter_ns() + 700_000_000
    command = [sys.executable, str(Path(stalling.__file__)), str(begin)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}/"
        time.sleep(max(begin - time.perf_counter_ns(), 0) / 1e9)
        rate, connections = (RATE, 200) if loop == "open" else (None, 8)
        result = run(LoadSpec(url=url, loop=loop, rate=rate, connections=connections, duration_s=SECONDS), begin)
        return json.loads(encode(result)), json.loads(process.communicate("")[0])


def rank(latencies: list[float], percentile: float) -> float:
    """A percentile, by rank, of latencies in seconds; in microseconds."""
    return sorted(latencies)[int(len(latencies) * percentile / 100) - 1] * 1e6


def test_an_open_loop_charges_a_stall_to_every_request_it_delayed() -> None:
    result, answered = measured("open")
    latency, late_us = result["latency"], result["late"]["max_us"]
    assert latency["count"] == len(answered) == len(SCHEDULE)
    real = [answer - due for due, answer in zip(SCHEDULE, sorted(answered), strict=True)]
    least = [stalling.latency_s(due) for due in SCHEDULE]
    for percentile in PERCENTILES:
        found = latency["percentiles"][str(percentile)]
        assert rank(least, percentile) * 0.95 <= found, percentile
        # within 5 %, and within what the generator itself says of its lateness, on a machine busy with other things
        assert found == pytest.approx(rank(real, percentile), rel=0.05, abs=late_us), percentile
    assert latency["max"] == pytest.approx(max(real) * 1e6, rel=0.05, abs=late_us)


def test_a_closed_loop_does_not() -> None:
    result, answered = measured("closed")
    assert result["latency"]["count"] <= len(answered)
    assert result["latency"]["percentiles"]["90"] < rank([stalling.latency_s(due) for due in SCHEDULE], 90) * 0.8
