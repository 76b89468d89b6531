"""The memory engine: no process, no network, the same answer each time. For `--dry-run` and for tests.

It speaks the agent's protocol (loadgen/contract.py), so that everything above the seam runs as it does on real
servers. Its figures are invented, and reports say so.
"""

from __future__ import annotations

import json
import platform
import random
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from typing import Any, Literal

import msgspec
from hdrh.histogram import HdrHistogram
from msgspec import Struct

from loadgen import contract
from orchestrator.engines.agent import Agent
from orchestrator.engines.ends import Exit
from orchestrator.engines.invented import EXIT_NS, MemoryObserver, clock, driven_open, steady, watched
from orchestrator.engines.protocol import EngineFacts, Launch, Limits, Placement, Say, Seat
from orchestrator.errors import BuildFailed, ServerFailed
from orchestrator.images.plan import LOADGEN, BaseFacts, BuiltImage, ImageSpec
from orchestrator.matrix.requirement import pinned_versions

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
    `agent`: whole lines of the load generator by operation, in the place of its own. `load` may change what it says of
    a slice.
    """

    rps: float | None = None
    noise: float = 0.02
    errors: Mapping[contract.ErrorKind, int] = field(default_factory=dict)
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
    end: contract.End | Literal["ignored"] = "answered"
    queued: contract.End | Literal["at_once"] = "answered"
    restarts: int = 0
    server_cpus: tuple[int, ...] | None = None
    limits: Mapping[str, int | None] = field(default_factory=dict)
    dies: Exit | None = None
    answers: Mapping[str, tuple[int, bytes]] = field(default_factory=dict)
    agent: Mapping[str, str] = field(default_factory=dict)
    load: Callable[[contract.LoadResult], contract.LoadResult] = lambda result: result


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

    def machine(self) -> contract.Machine:
        python = platform.python_version()
        return contract.Machine(cpu_model="none: invented figures", machine="x86_64", python=python)

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
        call = msgspec.json.decode(line, type=contract.AnyCall)
        canned = self._behaviour.agent.get(contract.operation(call))
        self._answer = canned or contract.encode(self._answers[type(call)](call))

    def receive(self, timeout_s: float) -> str:
        if self._under_load and self._behaviour.dies:
            raise ConnectionResetError("its container ended")
        return self._answer

    def close(self) -> None:
        """Nothing to close."""

    @property
    def _answers(self) -> Mapping[type[contract.Call[Any]], Callable[[Any], Struct]]:
        behaviour = self._behaviour
        return {
            contract.Clock: clock, contract.Steady: steady, contract.Wait: self._wait, contract.Fetch: self._fetch,
            contract.TakeSample: self.sample, contract.Signal: self._signal, contract.Load: self._load,
            contract.Watch: lambda call: watched(behaviour.end, behaviour.queued, call),
        }  # fmt: skip

    def _wait(self, call: contract.Wait) -> contract.Waited:
        answer = self._reply(call.request, reused=False)
        right = answer.status == call.expect.status and call.expect.body in (None, answer.body)
        seconds = 0.1 if right else call.deadline_s
        return contract.Waited(ok=right, attempts=1, connect_s=0.1, seconds=seconds, answer=answer)

    def _fetch(self, call: contract.Fetch) -> contract.Fetched:
        keeps = self._behaviour.keepalive
        keeps = bool(self._launch.variant.declares.keepalive) if keeps is None else keeps
        replies = [self._reply(request, reused=at > 0 and keeps) for at, request in enumerate(call.requests)]
        return contract.Fetched(answers=tuple(replies))

    def sample(self, _: contract.TakeSample) -> contract.Sampled | contract.Failed:
        """CPU and memory of the tree, as the agent tells them."""
        return contract.Sampled(sample=contract.Sample(**msgspec.structs.asdict(_server(0.15)), wanting=0))

    def _signal(self, call: contract.Signal) -> contract.Signalled:
        self._signal_ns = call.at_ns
        return contract.Signalled(before_ns=call.at_ns, after_ns=call.at_ns + 2_000, processes=1)

    def _load(self, call: contract.Load) -> contract.Loaded:
        self._under_load = True
        spec, behaviour, placement = call.spec, self._behaviour, self._launch.placement
        drawn = 2_000 + zlib.crc32(self._launch.variant.name.encode()) % 20_000
        usual = behaviour.rps or drawn * (1 - 0.8 / spec.connections)
        rps = max(1.0, usual * self._random.gauss(1.0, behaviour.noise))
        elapsed = spec.duration_s
        driven = driven_open(spec.rate, rps, elapsed) if spec.rate else None
        requests = driven.due if driven else max(0, int(rps * elapsed))
        busy = driven.busy if driven else 1.0
        server = _server(elapsed * (1.0 - behaviour.foreign) * busy, behaviour.restarts)
        limits = contract.KernelLimits(**{**asdict(LIMITS), **behaviour.limits})
        tenths = max(1, int(elapsed * 10))
        result = contract.LoadResult(
            spec=spec,
            warmup_s=spec.warmup_s,
            elapsed_s=elapsed,
            requests=requests,
            rps=(driven.in_time if driven else requests) / elapsed,
            latency=_latency(requests, driven.mean_us if driven else spec.connections / rps * 1e6),
            service=_latency(requests, 1e6 / rps) if driven else None,
            errors={**dict.fromkeys(contract.ERROR_KINDS, 0), **behaviour.errors},
            first_error=next((contract.FirstError(kind, "invented") for kind in behaviour.errors), None),
            connections=contract.Connections(opened=spec.connections, reconnects=0, per_request=0.0, resent=0),
            unanswered=contract.Unanswered(connections=0, oldest_us=1e6 / rps),
            tls=None,
            bytes=contract.Traffic(sent=60 * requests, received=180 * requests),
            client=_client(behaviour.client_share, elapsed, placement.client),
            per_100ms=(requests // tenths,) * tenths,
            kernel=None,
            late=contract.Late(bound_us=1000.0, max_us=80.0, requests=0) if driven else None,
            client_late=False,
            server=msgspec.structs.replace(server, cpus=behaviour.server_cpus or placement.server, limits=limits),
            host={f"cpu{cpu}": contract.CpuShares(busy=busy, steal=behaviour.steal) for cpu in placement.server},
            throttled=contract.Throttled(client=_quota(), server=_quota(behaviour.throttled_s), heat=None),
        )
        return contract.Loaded(result=behaviour.load(result))

    def _reply(self, request: contract.Request, *, reused: bool) -> contract.Answered:
        path = request.url.removeprefix(self.url)
        logs = self._behaviour.access_log
        if self._launch.variant.declares.access_log if logs is None else logs:
            self._log.append(path)
        status, body = self._behaviour.answers.get(path, (200, self._body(path, request.body)))
        reason = HTTPStatus(status).phrase
        return contract.Answered(status=status, reason=reason, http_version="1.1", body=body, connection_reused=reused)

    def _body(self, path: str, sent: bytes) -> bytes:
        if path == "/fingerprint":
            declared = self._launch.variant.declares.model_dump(exclude_none=True)
            return json.dumps(declared | {"python": "3.13.0", "pid": 1} | dict(self._behaviour.fingerprint)).encode()
        if found := re.fullmatch(r"/bytes/(\d+)", path):
            return b"x" * int(found[1])
        return sent if path == "/echo" else ITEM


def _install_report(spec: ImageSpec, failed: str) -> dict[str, Any]:
    pairs = () if failed else pinned_versions(spec.packages).items()
    invented = {"file": "invented", "tag": "py3-none-any", "kind": "wheel", "compiled": False, "bytes": 0}
    return {
        "schema": 1, "mode": spec.key.mode, "outcome": "failed" if failed else "pure", "system": [],
        "packages": [{"name": name, "version": version, **invented} for name, version in pairs],
        "seconds": {}, "bytes_downloaded": 0, "size_added": 0,
        "error": {"kind": "build_error", "line": failed} if failed else None,
        "python": platform.python_version(), "libc": "", "arch": "", "pip": "",
    }  # fmt: skip


def _latency(requests: int, mean_us: float) -> contract.Latency:
    histogram = HdrHistogram(contract.LOWEST_US, contract.HIGHEST_US, contract.DIGITS)
    shape = ((0.5, 0.5), (0.9, 0.4), (1.6, 0.09), (3.0, 0.01))
    scale = mean_us / sum(factor * share for factor, share in shape)
    for factor, share in shape:
        histogram.record_value(max(1, int(scale * factor)), int(requests * share))
    count = histogram.get_total_count()
    low, mean, high = (scale * 0.5, mean_us, scale * 3) if count else (None, None, None)
    return contract.Latency(
        histogram=histogram.encode().decode(), count=count, min=low, mean=mean, max=high, percentiles={}
    )


def _client(share: float, elapsed: float, cpus: tuple[int, ...]) -> contract.ClientUse:
    return contract.ClientUse(
        user_s=share * elapsed * 0.6,
        system_s=share * elapsed * 0.4,
        share=share,
        involuntary_switches=0,
        cpus=cpus,
        limits=contract.KernelLimits(**asdict(LIMITS)),
    )


def _quota(seconds: float = 0.0) -> contract.Quota:
    return contract.Quota(periods=int(seconds > 0), seconds=seconds)


def _server(cpu_s: float, restarts: int = 0) -> contract.ServerUse:
    return contract.ServerUse(
        cpu_s=cpu_s,
        user_s=cpu_s * 0.7,
        system_s=cpu_s * 0.3,
        rss_bytes=40_000_000,
        pss_bytes=30_000_000,
        peak_rss_bytes=40_000_000,
        processes=1,
        born=restarts,
        ended=restarts,
        ended_s=cpu_s / 10 * (restarts > 0),
        unwaiting=0,
        threads=1,
        voluntary_switches=0,
        involuntary_switches=0,
    )
