"""Documents of the load generator for tests: a flawless one of a second, and what differs from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hdrh.histogram import HdrHistogram

from loadgen.contract import DIGITS, HIGHEST_US, LOWEST_US, LoadResult


def histogram_of(times_us: Sequence[int] = ()) -> str:
    """The text of a histogram of such times."""
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    for time in times_us:
        histogram.record_value(time)
    return str(histogram.encode().decode())


FLAWLESS: dict[str, Any] = {
    "elapsed_s": 1.0, "requests": 1000, "rps": 1000.0, "service": None, "errors": {}, "first_error": None,
    "latency": {"histogram": histogram_of(), "count": 1000, "min": 1.0, "mean": 8000.0, "max": 9e6, "percentiles": {}},
    "connections": {"opened": 8, "reconnects": 0, "per_request": 0.0, "resent": 0}, "tls": None,
    "bytes": {"sent": 0, "received": 0}, "per_100ms": [], "kernel": None, "late": None, "client_late": False,
    "client": {"user_s": 0.2, "system_s": 0.3, "share": 0.5, "involuntary_switches": 0},
    "server": {
        "cpu_s": 0.98, "user_s": 0.6, "system_s": 0.2, "rss_bytes": 40, "pss_bytes": 30, "peak_rss_bytes": 50,
        "processes": 2, "ended": 0, "threads": 2, "voluntary_switches": 2000, "involuntary_switches": 100,
    },
    "host": {"cpu0": {"busy": 0.99, "steal": 0.0}},
    "throttled": {"client": {"periods": 0, "seconds": 0.0}, "server": {"periods": 0, "seconds": 0.0}, "heat": None},
    "unanswered": {"connections": 0, "oldest_us": 8000.0},
}  # fmt: skip
"""One second of 8 connections, the server on CPU 0, the load generator on CPU 1."""


def load_of(**changes: Any) -> LoadResult:
    """The flawless one with other fields; of a section only those that are named."""
    return msgspec.convert(_merged(FLAWLESS, changes), LoadResult)


def changed(load: LoadResult, **changes: Any) -> LoadResult:
    """The same of any document."""
    return msgspec.convert(_merged(msgspec.to_builtins(load), changes), LoadResult)


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{name: _merged(old.get(name), value) for name, value in new.items()}}
