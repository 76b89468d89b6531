"""The memory engine: no process, no network, the same answer each time. For `--dry-run` and for tests.

It speaks the agent's protocol (loadgen/schema/), so that everything above the seam runs as it does on real
servers. Its figures are invented, and reports say so.
"""

from __future__ import annotations

import base64
import json
import platform
import random
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from typing import Any

from hdrh.histogram import HdrHistogram

from orchestrator.engines.agent import Agent
from orchestrator.engines.ends import Exit
from orchestrator.engines.invented import EXIT_NS, MemoryObserver, driven_open, steady, watched
from orchestrator.engines.protocol import EngineFacts, Launch, Limits, Placement, Say, Seat
from orchestrator.errors import BuildFailed, ServerFailed
from orchestrator.images.plan import LOADGEN, BaseFacts, BuiltImage, ImageSpec
from orchestrator.matrix.requirement import pinned_versions

Json = dict[str, Any]
ERROR_KINDS = ("refused", "reset", "closed_early", "timeout", "status", "wrong_body", "protocol")

LIMITS = Limits(memory_bytes=1 << 30, swap_bytes=0, pids=256)
ITEM = b'{"item_id":42,"q":null}'


@dataclass(frozen=True)
class Behaviour:
    """How an invented server behaves; tests use it to make each verdict fire.

    `rps` None: drawn from the server's name; `keepalive`, `access_log` None: as declared. `noise`: relative spread
    of slices. `foreign`, `steal`: shares of a CPU. `throttled_s`: of each slice, for which a quota stops it.
    `end`: what the request in flight gets, or `ignored`; `queued`: what one gets that waits for a place when the signal
    comes, or `at_once` where none does; `dies`: how it ends as soon as it is under load. `restarts`: processes that end
    in each slice, and as many begin. `server_cpus`: on which it may run, None: where it is placed. `limits`: of the
    server, where they are not those asked for. `answers`: status and body by path, in the place of the right ones.
    `agent`: whole answers of the load generator by operation, in the place of its own. `load` may change the load
    generator's finished document.
    """

    rps: float | None = None
    noise: float = 0.02
    errors: Mapping[str, int] = field(default_factory=dict)
    client_share: float = 0.4
    foreign: float = 0.0
    steal: float = 0.0
    throttled_s: float = 0.0
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    keepalive: bool | None = None
    access_log: bool | None = None
    build_error: str = ""
    install_error: str = ""
    start_error: str = ""
    architecture: str = "x86_64"
    end: str = "answered"
    queued: str = "answered"
    restarts: int = 0
    server_cpus: tuple[int, ...] | None = None
    limits: Mapping[str, int | None] = field(default_factory=dict)
    dies: Exit | None = None
    answers: Mapping[str, tuple[int, bytes]] = field(default_factory=dict)
    agent: Mapping[str, Json] = field(default_factory=dict)
    load: Callable[[Json], Json] = lambda document: document


class MemoryEngine:
    """`behaviours` by the name of a variant (`uvicorn/standard`) or of an image."""

    def __init__(
        self, behaviours: Mapping[str, Behaviour] | None = None, *, why: str = "", cpus: tuple[int, ...] = (0, 1)
    ) -> None:
        self._behaviours = {f"null/bytes-{len(ITEM)}": Behaviour(rps=100_000), **(behaviours or {})}
        self.facts = EngineFacts("memory", "1", cpus, why, {"server": LIMITS, "client": LIMITS})
        self.started = 0
        self.stopped = 0

    def prepare(self, say: Say) -> BuiltImage:
        return self.build(LOADGEN, say)

    def machine(self) -> Mapping[str, Any]:
        return {"cpu_model": "none: invented figures", "machine": "x86_64", "python": platform.python_version()}

    def build(self, spec: ImageSpec, say: Say) -> BuiltImage:
        behaviour = self._behaviours.get(spec.key.image, Behaviour())
        if behaviour.build_error:
            raise BuildFailed(behaviour.build_error)
        report = _install_report(spec, behaviour.install_error)
        base = BaseFacts(spec.base.official, "memory", "", "invented")
        return BuiltImage(spec, f"memory/{spec.key.id}", "memory", base, behaviour.architecture, report)

    def observe(self, placement: Placement) -> MemoryObserver:
        return MemoryObserver()

    def start(self, launch: Launch, seat: Seat | None = None) -> MemoryServer:
        behaviour = self._behaviours.get(launch.variant.name, Behaviour())
        if behaviour.start_error:
            raise ServerFailed(behaviour.start_error)
        self.started += 1
        return MemoryServer(self, launch, behaviour)

    def close(self) -> None:
        """Nothing to remove."""


class MemoryServer:
    """A server that is only arithmetic; it is its own channel to its agent."""

    root_pid = 1
    ca = None
    url = "http://127.0.0.1:8000"

    def __init__(self, engine: MemoryEngine, launch: Launch, behaviour: Behaviour) -> None:
        self._engine = engine
        self._launch = launch
        self._behaviour = behaviour
        self._answer = ""
        self._log: list[str] = ['{"mark_ns": 0, "cpu_ns": 0}'] if "/mark.py " in launch.variant.run else []
        seed = zlib.crc32(f"{launch.id}/{engine.started}".encode())
        self._random = random.Random(seed)
        self.agent = Agent(self)
        self.signaller = Agent(self)
        self._signal_ns = 0
        self._under_load = False

    def log(self) -> str:
        return "\n".join(self._log)

    def wait(self, timeout_s: float) -> Exit | None:
        ended_so = self._behaviour.dies if self._under_load else None
        if ended_so or not self._signal_ns or self._behaviour.end == "ignored":
            return ended_so
        return Exit(0, self._signal_ns + EXIT_NS)

    def stop(self) -> None:
        self._engine.stopped += 1

    # --- the channel --------------------------------------------------------------------------------------------

    def send(self, line: str) -> None:
        asked = json.loads(line)
        op = asked.pop("op")
        self._answer = json.dumps(
            self._behaviour.agent[op] if op in self._behaviour.agent else getattr(self, f"_{op}")(**asked)
        )

    def receive(self, timeout_s: float) -> str:
        if self._under_load and self._behaviour.dies:
            raise ConnectionResetError("its container ended")
        return self._answer

    def close(self) -> None:
        """Nothing to close."""

    def _wait(self, request: Json, expect: Json, deadline_s: float) -> Json:
        answer = self._reply(request, False)
        right = answer["status"] == expect["status"] and expect["body"] in (None, answer["body"])
        seconds = 0.1 if right else deadline_s
        return {"ok": right, "attempts": 1, "connect_s": 0.1, "seconds": seconds, "answer": answer, "error": None}

    def _fetch(self, requests: list[Json], keep_alive: bool) -> Json:
        keeps = self._behaviour.keepalive
        keeps = self._launch.variant.declares.keepalive if keeps is None else keeps
        return {"ok": True, "answers": [self._reply(request, at > 0 and keeps) for at, request in enumerate(requests)]}

    def _clock(self) -> Json:
        return {"ok": True, "monotonic_ns": 0, "wall_ns": 0}

    def _steady(self, **doc: Any) -> Json:
        return steady(**doc)

    def _watch(self, **doc: Any) -> Json:
        return watched(self._behaviour.end, self._behaviour.queued, doc)

    def _sample(self, pid: int) -> Json:
        return {"ok": True, "sample": {**_server(0.15), "wanting": 0}}

    def _signal(self, pid: int, name: str, at_ns: int, group: bool = False) -> Json:
        self._signal_ns = at_ns
        return {"ok": True, "before_ns": at_ns, "after_ns": at_ns + 2_000, "processes": 1}

    def _load(self, spec: Json) -> Json:
        self._under_load = True
        behaviour, connections = self._behaviour, spec.get("connections", 1)
        drawn = 2_000 + zlib.crc32(self._launch.variant.name.encode()) % 20_000
        rps = (behaviour.rps or drawn * (1 - 0.8 / connections)) * self._random.gauss(1.0, behaviour.noise)
        elapsed = float(spec["duration_s"])
        driven = driven_open(spec["rate"], rps, elapsed) if spec.get("loop") == "open" else None
        requests = driven.due if driven else max(0, int(rps * elapsed))
        busy = driven.busy if driven else 1.0
        errors = dict.fromkeys(ERROR_KINDS, 0) | dict(behaviour.errors)
        share = 1.0 - behaviour.foreign
        document = {
            "schema": "loadgen/1",
            "spec": spec,
            "warmup_s": spec["warmup_s"],
            "elapsed_s": elapsed,
            "requests": requests,
            "rps": (driven.in_time if driven else requests) / elapsed,
            "latency": _latency(requests, driven.mean_us if driven else connections / rps * 1e6),
            "service": _latency(requests, 1e6 / rps) if driven else None,
            "errors": errors,
            "first_error": next(({"kind": k, "detail": "invented"} for k, n in errors.items() if n), None),
            "connections": {"opened": connections, "reconnects": 0, "per_request": 0.0, "resent": 0},
            "unanswered": {"connections": 0, "oldest_us": 1e6 / rps},
            "bytes": {"sent": 60 * requests, "received": 180 * requests},
            "client": {
                "user_s": behaviour.client_share * elapsed * 0.6,
                "system_s": behaviour.client_share * elapsed * 0.4,
                "share": behaviour.client_share,
                "involuntary_switches": 0,
                "cpus": list(self._launch.placement.client),
                "limits": asdict(LIMITS),
            },
            "per_100ms": [requests // max(1, int(elapsed * 10))] * max(1, int(elapsed * 10)),
            "kernel": None,
            "late": {"bound_us": 1000.0, "max_us": 80.0, "requests": 0} if driven else None,
            "client_late": False,
            "tls": None,
            "server": _server(elapsed * share * busy, behaviour.restarts)
            | {
                "cpus": list(behaviour.server_cpus or self._launch.placement.server),
                "limits": {**asdict(LIMITS), **behaviour.limits},
            },
            "host": {f"cpu{cpu}": {"busy": busy, "steal": behaviour.steal} for cpu in self._launch.placement.server},
            "throttled": {"client": _quota(), "server": _quota(behaviour.throttled_s), "heat": None},
        }
        return {"ok": True, "result": behaviour.load(document)}

    def _reply(self, request: Json, reused: bool) -> Json:
        path = request["url"].removeprefix(self.url)
        logs = self._behaviour.access_log
        if self._launch.variant.declares.access_log if logs is None else logs:
            self._log.append(path)
        right = (200, self._body(path, base64.b64decode(request.get("body", ""))))
        status, body = self._behaviour.answers.get(path, right)
        return {
            "status": status, "reason": HTTPStatus(status).phrase, "http_version": "1.1", "headers": [], "error": None,
            "body": base64.b64encode(body).decode(), "connection_reused": reused,
        }  # fmt: skip

    def _body(self, path: str, sent: bytes) -> bytes:
        if path == "/fingerprint":
            declared = self._launch.variant.declares.model_dump(exclude_none=True)
            return json.dumps(declared | {"python": "3.13.0", "pid": 1} | dict(self._behaviour.fingerprint)).encode()
        if found := re.fullmatch(r"/bytes/(\d+)", path):
            return b"x" * int(found[1])
        return sent if path == "/echo" else ITEM


def _install_report(spec: ImageSpec, failed: str) -> Json:
    pairs = () if failed else pinned_versions(spec.packages).items()
    invented = {"file": "invented", "tag": "py3-none-any", "kind": "wheel", "compiled": False, "bytes": 0}
    return {
        "schema": 1, "mode": spec.key.mode, "outcome": "failed" if failed else "pure", "system": [],
        "packages": [{"name": name, "version": version, **invented} for name, version in pairs],
        "seconds": {}, "bytes_downloaded": 0, "size_added": 0,
        "error": {"kind": "build_error", "line": failed} if failed else None,
        "python": platform.python_version(), "libc": "", "arch": "", "pip": "",
    }  # fmt: skip


def _latency(requests: int, mean_us: float) -> Json:
    histogram = HdrHistogram(1, 60_000_000, 3)
    shape = ((0.5, 0.5), (0.9, 0.4), (1.6, 0.09), (3.0, 0.01))
    scale = mean_us / sum(factor * share for factor, share in shape)
    for factor, share in shape:
        histogram.record_value(max(1, int(scale * factor)), int(requests * share))
    count = histogram.get_total_count()
    return {
        "unit": "us", "histogram": histogram.encode().decode(), "count": count, "percentiles": {},
        "min": scale * 0.5 if count else None, "mean": mean_us if count else None, "max": scale * 3 if count else None,
    }  # fmt: skip


def _quota(seconds: float = 0.0) -> Json:
    return {"periods": int(seconds > 0), "seconds": seconds}


def _server(cpu_s: float, restarts: int = 0) -> Json:
    return {
        "cpu_s": cpu_s, "user_s": cpu_s * 0.7, "system_s": cpu_s * 0.3, "rss_bytes": 40_000_000,
        "pss_bytes": 30_000_000,
        "peak_rss_bytes": 40_000_000, "processes": 1, "born": restarts, "ended": restarts,
        "ended_s": cpu_s / 10 * (restarts > 0), "unwaiting": 0, "threads": 1, "voluntary_switches": 0,
        "involuntary_switches": 0,
    }  # fmt: skip
