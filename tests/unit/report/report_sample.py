"""A hand-made run with every kind of row, assembled into records as a measured one is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Any

from hdrh.histogram import HdrHistogram

from loadgen.contract import DIGITS, HIGHEST_US, LOWEST_US, LoadResult
from orchestrator.engines.protocol import Placement
from orchestrator.evidence.model import Record, RunFile, Summary
from orchestrator.figures import Estimate
from orchestrator.images.plan import Base, BaseFacts, BuiltImage, ImageSpec
from orchestrator.judge.assemble import Judging, Measured, evidence, judged
from orchestrator.matrix.cell import Cell, ImageKey
from orchestrator.matrix.expand import Selection
from orchestrator.matrix.models import Declares, Schedule, SystemPackages
from orchestrator.matrix.resolved import Variant
from orchestrator.probes.fingerprint import Fingerprint
from orchestrator.probes.results import Check, Failure, Mismatch, Round, Slice
from tests.unit.loads import load_of

BASELINE = "uvicorn/standard"
CLIENT_BOUND = {"client": {"user_s": 0.4, "system_s": 0.53, "share": 0.93}}
PLACEMENT = Placement((0,), (1,))
NO_IMAGE = Failure("install", "gcc: error: 'ev.h' | no such file\n=HYPERLINK(1)")
NO_START = Failure("start", "\x1b[31mERROR\x1b[0m: bind failed, `see` <log> & *stars*", "the end of a log")
DRIFT = (1.0, 1.02, 0.99)
"""What the machine did to every cell of a round."""


def variant(name: str, protocol: str, note: str = "") -> Variant:
    server, _, kind = name.partition("/")
    return Variant(
        server=server, variant=kind, image=server, protocol=protocol, install=(f"{server}==1.0",), sdist_only=False,
        compiled=(), run=f"{server} {{app}}", options="", tls="", env={}, supports=frozenset(), system={},
        declares=Declares(), note=note,
    )  # fmt: skip


def cell(name: str, app: str, connections: int = 32, *, note: str = "", **axes: Any) -> Cell:
    protocol = "wsgi" if app == "flask" else "asgi"
    made = Cell(variant(name, protocol, note), "slim", "wheel", "3.13", app, "item", 1, None, False, connections)
    return made.only(**axes)


def load(rps: float, connections: int, changes: Mapping[str, Any]) -> LoadResult:
    """A load generator's document of one second."""
    requests, mean_us = round(rps), connections / rps * 1e6
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    for factor, share in ((0.8, 0.6), (1.1, 0.35), (2.7, 0.05)):
        histogram.record_value(max(1, int(mean_us * factor)), int(requests * share))
    known = {
        "requests": requests, "rps": rps, "latency": {"histogram": histogram.encode().decode(), "mean": mean_us},
        "server": {
            "user_s": 0.0, "system_s": 0.0, "rss_bytes": 41_300_000, "pss_bytes": None, "peak_rss_bytes": 41_300_000,
            "processes": 1, "voluntary_switches": -1, "involuntary_switches": -1,
        },
        "host": {"cpu1": {"busy": 0.5, "steal": 0.0}},
    }  # fmt: skip
    return load_of(**{**known, **changes})


def rounds(
    rps: float, connections: int = 32, *, count: int = 3, noise: float = 0.004,
    mismatches: Sequence[Mismatch] = (), changes: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Round, ...]:  # fmt: skip
    """`changes`: fields of the load generator's document that differ from a flawless one's."""
    check = Check(0.2, Fingerprint(python="3.13.5", implementation="CPython", gil=True), tuple(mismatches), True, False)

    def timed(number: int, at: int) -> Slice:
        luck = noise * math.cos(rps + 2 * at + number)  # of its own: what all have in common cancels in ratios
        found = load(rps * DRIFT[number] * (1 + luck), connections, changes)
        return Slice(at, "2026-01-01T00:00:00", found, 0.0)

    return tuple(Round(number + 1, check, tuple(timed(number, at) for at in range(3))) for number in range(count))


def image(of: Cell) -> BuiltImage:
    base = Base("slim", "3.13", "python:3.13-slim-trixie", "slim")
    facts = BaseFacts("appserver-matrix/standin-slim:py3.13-0a1b", "sha256:00", "slim", "pull failed: no route to host")
    key = ImageKey(of.variant.image, "slim", "wheel", "3.13")
    spec = ImageSpec(key, base, "slim/Dockerfile", of.variant.install, (), SystemPackages())
    return BuiltImage(spec, "appserver-matrix/x", "sha256:11", facts, "amd64", {"outcome": "pure"})


def measured(of: Cell, made: Sequence[Round], build: BuiltImage | Failure | None = None) -> Measured:
    return Measured(of, build or image(of), tuple(made))


def sample(connections: tuple[int, ...] = (8, 32)) -> list[Record]:
    """One row for each thing that may happen to a row, at 8 connections, at 32, or at both."""
    return [record for record in _all() if record.cell.connections in connections]


@cache
def _all() -> tuple[Record, ...]:
    return tuple(assembled([*_row_kinds(8), *_row_kinds(32)]))


def assembled(
    items: Sequence[Measured], baseline: str = BASELINE, *, against: Mapping[str, object] = MappingProxyType({}),
    apart: tuple[str, ...] = (),
) -> list[Record]:  # fmt: skip
    cells = tuple(item.cell for item in items)
    whole = Selection("sample", "load", baseline, cells, (), Schedule(), against, apart)
    return judged(evidence(whole, items, {}), Judging(PLACEMENT, "x86_64"))


def steady(records: Sequence[Record]) -> list[Record]:
    """With intervals of ±2 %, whatever the bootstrap draws: golden files are about the layout."""
    return [record.model_copy(update={"summary": record.summary and _steady(record.summary)}) for record in records]


def _steady(summary: Summary) -> Summary:
    wide = {
        name: _wide(estimate)
        for name in ("rps", "ratio", "cpu_us_per_request", "cpu_ratio")
        if (estimate := getattr(summary, name)) and estimate.low != estimate.high
    }
    latencies = {name: _wide(estimate) for name, estimate in summary.latency_intervals_us.items()}
    return summary.model_copy(update=wide | {"latency_intervals_us": latencies})


def _wide(estimate: Estimate) -> Estimate:
    return estimate.model_copy(update={"low": estimate.value * 0.98, "high": estimate.value * 1.02})


def _row_kinds(c: int) -> list[Measured]:
    busy = {"cpu0": {"busy": 0.99, "steal": 0.21}, "cpu1": {"busy": 0.5, "steal": 0.0}}
    log = (Mismatch("access_log", "False", "True"),)
    broken = [Round(number, None, (), NO_START) for number in (1, 2, 3)]
    sync = cell("gunicorn/sync", "flask", c, note="closes the connection after each answer")
    return [
        measured(cell(BASELINE, "starlette", c), rounds(19_000, c)),
        measured(cell("hypercorn/uvloop", "starlette", c), rounds(18_950, c, noise=0.05)),
        measured(cell("granian/asgi", "starlette", c), rounds(27_000, c, changes=CLIENT_BOUND)),
        measured(cell("daphne/twisted", "starlette", c), rounds(4_245, c, changes={"host": busy})),
        measured(cell("fastapi-cli/run", "fastapi", c), rounds(15_000, c, mismatches=log)),
        measured(cell("gunicorn/gthread", "flask", c, threads=4), rounds(1_512, c, changes={"server": None})),
        measured(sync, rounds(1_300, c, changes={"connections": {"per_request": 1.0}})),
        measured(cell("waitress/threads", "flask", c, threads=4), rounds(900, c, changes={"errors": {"reset": 40}})),
        measured(cell("cheroot/threads", "flask", c, threads=4), broken),
        measured(cell("bjoern/script", "flask", c, mode="sdist"), (), NO_IMAGE),
    ]


def run_file(made: Sequence[Record], *, engine: str = "docker", **changes: Any) -> RunFile:
    given: Mapping[str, Any] = {
        "id": "2026-01-01T00-00-00-sample", "suite": "sample", "baseline": BASELINE,
        "started": "2026-01-01T00:00:00+00:00", "finished": "2026-01-01T00:05:00+00:00", "complete": True,
        "fingerprint": "00", "code": {"commit": "0000000"}, "seed": 1, "cells": [record.id for record in made],
        "engine": {"name": engine, "version": "20.10", "cpus": [0, 1], "why": "a Docker Engine answers"},
        "placement": asdict(PLACEMENT), "machine": {"cpu_model": "Some CPU", "machine": "x86_64"},
        "schedule": {"rounds": 3, "slices": 3, "slice_s": 1.0, "warmup_s": 0.3, "first_warmup_s": 1.0},
        "left_out": [
            {"id": f"meinheld/gunicorn-worker·slim·c{number}", "why": f"excluded: {why}"}
            for number, why in product((8, 32), ("does not build",))
        ],
        "costs": {"overhead_s_per_cell": 0.83, "orchestrator_cpu_share": 0.011},
    }  # fmt: skip
    return RunFile.model_validate({**given, **changes})
