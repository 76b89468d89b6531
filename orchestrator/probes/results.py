"""What measuring yields: frozen values, in the units that their names end with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from loadgen.contract import LoadResult
from orchestrator.probes.fingerprint import Fingerprint

Stage = Literal["build", "install", "start", "check", "load", "judge"]

Section = Mapping[str, Any]
"""What a probe of one cell found, as the fields of its own section of the record."""


@dataclass(frozen=True)
class Failure:
    """Why a cell, or one round of it, has no figures. `reason` is one line; `detail` the end of a log."""

    stage: Stage
    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Mismatch:
    """A field of the declared configuration that is not what runs."""

    field: str
    declared: str
    found: str


@dataclass(frozen=True)
class Check:
    """What was found before any timing. `ready_s` counts from the first try to reach the server.

    `idle_…`: of the whole tree at rest, before any load; None where it may not be read. `unverified`: fields that are
    declared and could not be found out.
    """

    ready_s: float
    fingerprint: Fingerprint
    mismatches: tuple[Mismatch, ...]
    keepalive: bool
    access_log: bool
    idle_rss_bytes: int | None = None
    idle_pss_bytes: int | None = None
    unverified: tuple[str, ...] = ()


@dataclass(frozen=True)
class Slice:
    """One timed stretch. `order` is its position in the round; `load` is the load generator's own document.

    `orchestrator_s` is the CPU that this program burned while the slice ran. `rate` is that of an open loop's arrivals,
    in requests per second; None for a closed loop.
    """

    order: int
    started: str
    load: LoadResult
    orchestrator_s: float
    rate: float | None = None


@dataclass(frozen=True)
class Round:
    """One fresh start of a cell's server: the check before, and the slices, or why there are none."""

    number: int
    check: Check | None
    slices: tuple[Slice, ...]
    failure: Failure | None = None
