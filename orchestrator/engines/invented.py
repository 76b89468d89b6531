"""What the memory engine answers about load at a rate, and about a server's start and end: invented, always alike."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from orchestrator.engines.agent import Agent
from orchestrator.engines.protocol import Seat

Json = dict[str, Any]
MS = 1_000_000
REMAINING_NS, EXIT_NS = 1_250 * MS, 1_300 * MS


def watched(end: str, queued: str, doc: Mapping[str, Any]) -> Json:
    """The load generator's answer to `watch` (loadgen/lifecycle.py), of a server that closes idle connections.

    `queued`: the end of the request that waits for a place; `at_once`: none does.
    """
    signal, later = doc["signal_ns"], doc["signal_ns"] + doc["after_ns"]
    serves_on, asked = end == "ignored", signal - doc["queue_ns"]
    slow = "answered" if serves_on else end
    waits = MS if queued == "at_once" else doc["queue_ns"] + REMAINING_NS + MS
    size = 180 if queued in ("at_once", "answered") else 0
    fates = {
        "slow": _fate(slow, signal + REMAINING_NS, signal - doc["lead_ns"], 180 if slow == "answered" else 0),
        "queued": _fate("answered" if size else queued, asked + waits, asked, size),
        "idle": _fate("open", doc["until_ns"]) if serves_on else _fate("closed", signal + 2 * MS),
        "kept": _fate("answered", later + MS, later, 180) if serves_on else _fate("closed", signal + 2 * MS),
        "new": _fate("answered", later + MS, later, 180) if serves_on else _fate("refused", later),
    }
    return {"ok": True, "received_ns": signal - doc["lead_ns"] + MS, "connections": fates}


def _fate(end: str, end_ns: int, sent_ns: int | None = None, size: int = 0) -> Json:
    return {
        "end": end, "end_ns": end_ns, "sent_ns": sent_ns, "first_byte_ns": end_ns if size else None, "bytes": size,
        "status": 200 if end == "answered" else None,
    }  # fmt: skip


def steady(begin_ns: int, end_ns: int, rate: float, switch_ns: int, **_doc: Any) -> Json:
    """The load generator's answer to `steady`: what is due in the first tenth of a second after the switch is lost."""
    lost = range(switch_ns, switch_ns + 100 * MS)
    due = range(begin_ns, end_ns, int(1e9 / rate))
    return {"ok": True, "requests": [[at, at + 12 * MS, "closed_early" if at in lost else ""] for at in due]}


@dataclass(frozen=True)
class Driven:
    """What an open loop comes to: requests due, those answered before its end, mean latency, share of time at work."""

    due: int
    in_time: int
    mean_us: float
    busy: float


def driven_open(rate: float, capacity: float, elapsed_s: float) -> Driven:
    """An M/M/1 queue; at 97 % of its `capacity` (requests per second) and beyond, one that is as long."""
    due, load = int(rate * elapsed_s), rate / capacity
    return Driven(due, min(due, int(capacity * elapsed_s)), 1e6 / capacity / max(1 - load, 0.03), min(load, 1.0))


class MemoryObserver:
    """Beside no server in particular; it is its own channel to its agent."""

    def __init__(self) -> None:
        self.agent = Agent(self)
        self._ports = count(8000)
        self._answer = ""

    def seat(self) -> Seat:
        return Seat(self.agent, "memory", next(self._ports))

    def stop(self) -> None:
        """Nothing to remove."""

    def send(self, line: str) -> None:
        asked = json.loads(line)
        self._answer = json.dumps(getattr(self, f"_{asked.pop('op')}")(**asked))

    def receive(self, timeout_s: float) -> str:
        return self._answer

    def close(self) -> None:
        """Nothing to close."""

    def _clock(self) -> Json:
        return {"ok": True, "monotonic_ns": 0, "wall_ns": 0}

    def _startup(self, quick: Json, until_ns: int, idle_ns: int) -> Json:
        return {"ok": True, "accepted_ns": 200 * MS, "answered_ns": 210 * MS, "latencies_us": [9_000.0, *[300.0] * 9]}

    def _fetch(self, requests: list[Json]) -> Json:
        body = base64.b64encode(b'{"pid":2}').decode()
        return {"ok": True, "answers": [{"status": 200, "body": body, "error": None} for _ in requests]}

    def _steady(self, **doc: Any) -> Json:
        return steady(**doc)
