"""A second opinion: `wrk` and `h2load` behind the same contract, read from what they write for machines.

They check less: neither compares bodies, wrk takes every status under 400 for right, and neither
verifies certificates. Each runs in one thread, as one process of the built-in generator does.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from loadgen import histogram, proc, throttle
from loadgen import slice as builtin
from loadgen.affinity import pinned
from loadgen.contract import ERROR_KINDS, ErrorKind, FirstError, LoadResult, LoadSpec, Traffic
from loadgen.errors import EngineError, SpecError
from loadgen.exchange import ring
from loadgen.result import connections
from loadgen.snapshot import bounded_use, kernel_use, server_use, snapshot, watch
from loadgen.target import split

GRACE_S = 30.0  # over the stretch, until an engine that does not end is killed

WRK_SCRIPT = r"""
wrk.method = %(method)s
wrk.body = %(body)s
%(headers)s
done = function(summary, latency, requests)
  local out = io.open(%(out)s, "w")
  local e = summary.errors
  out:write(string.format('{"requests":%%d,"bytes":%%d,"duration_us":%%d,',
    summary.requests, summary.bytes, summary.duration))
  out:write(string.format('"errors":{"connect":%%d,"read":%%d,"write":%%d,"status":%%d,"timeout":%%d},"latency":[',
    e.connect, e.read, e.write, e.status, e.timeout))
  for i = 1, #latency do
    local us, count = latency(i)
    out:write(string.format("%%s[%%d,%%d]", i > 1 and "," or "", us, count))
  end
  out:write("]}\n")
  out:close()
end
"""


@dataclass(frozen=True)
class Found:
    """What an engine reported: right answers, microseconds with their counts, errors, bytes read, its stretch."""

    requests: int
    latencies: Counter[int]
    errors: dict[ErrorKind, int]
    received: int | None
    elapsed_s: float
    per_100ms: list[int]


def run_engine(spec: LoadSpec) -> LoadResult:
    """The LoadResult of a slice driven by wrk or h2load. Raises EngineError where it cannot do it.

    The warm-up is the built-in generator's; the engine then opens connections of its own.
    """
    _refuse_unsupported(spec)
    if spec.warmup_s:
        warm = replace(spec, engine="builtin", duration_s=spec.warmup_s, warmup_s=0.0, watch_pid=None)
        builtin.run(warm)
    with tempfile.TemporaryDirectory() as folder, pinned(spec.cpus):
        command, read = ENGINES[spec.engine](spec, Path(folder))
        watched = watch(spec.watch_pid)
        before, used = snapshot(watched), resource.getrusage(resource.RUSAGE_CHILDREN)
        _run(spec, command)
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        after = snapshot(watch(spec.watch_pid))
        found = read()
    user, system = own.ru_utime - used.ru_utime, own.ru_stime - used.ru_stime
    kind = next((kind for kind, count in found.errors.items() if count), None)
    return LoadResult(
        spec=spec,
        warmup_s=spec.warmup_s,
        elapsed_s=found.elapsed_s,
        requests=found.requests,
        rps=found.requests / found.elapsed_s,
        latency=histogram.of_counts(found.latencies),
        service=None,
        errors={kind: found.errors.get(kind, 0) for kind in ERROR_KINDS},
        first_error=FirstError(kind, f"counted by {spec.engine}, which says no more") if kind else None,
        connections=connections(spec.connections, 0, found.requests, 0),
        tls=None,
        bytes=Traffic(sent=found.requests * ring(spec)[0].size, received=found.received),
        client=bounded_use(before, user, system, after.at - before.at, own.ru_nivcsw - used.ru_nivcsw),
        per_100ms=tuple(found.per_100ms),
        kernel=kernel_use(before, after),
        late=None,
        client_late=False,
        server=server_use(spec.watch_pid, before, after, proc.memory(after.server)),
        host=proc.shares(before.cpus, after.cpus),
        throttled=throttle.between(before.throttled, after.throttled),
    )


def _refuse_unsupported(spec: LoadSpec) -> None:
    if spec.paths or spec.processes > 1:
        raise SpecError(f"spec.engine: {spec.engine} is driven with one path and one process; use builtin")
    if spec.engine == "wrk" and spec.duration_s != int(spec.duration_s):
        raise SpecError(f"spec.duration_s: wrk takes whole seconds, not {spec.duration_s:g}")
    if spec.engine == "wrk" and len({name.lower() for name, _ in spec.headers}) < len(spec.headers):
        raise SpecError("spec.headers: wrk sends one field of each name; use builtin")
    if spec.engine == "h2load" and spec.method not in ("GET", "POST"):
        raise SpecError(f"spec.method: h2load sends GET, or POST with a body, not {spec.method}")


def _run(spec: LoadSpec, command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=spec.duration_s + GRACE_S,
            check=False,
        )
    except FileNotFoundError:
        raise EngineError(
            f"{spec.engine} is not installed here; the loadgen image has it when built with SECOND_OPINION=1"
        ) from None
    except subprocess.TimeoutExpired:
        raise EngineError(f"{spec.engine} did not end {GRACE_S:g} s after its time") from None
    if done.returncode != 0:
        raise EngineError(f"{spec.engine} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")


def _wrk(spec: LoadSpec, folder: Path) -> tuple[list[str], Callable[[], Found]]:
    out = folder / "wrk.json"
    script = folder / "wrk.lua"
    fields = {
        "method": _lua(spec.method.encode()),
        "body": _lua(spec.body) if spec.body else "nil",
        "headers": "\n".join(f"wrk.headers[{_lua(k.encode())}] = {_lua(v.encode('latin-1'))}" for k, v in spec.headers),
        "out": _lua(str(out).encode()),
    }
    script.write_text(WRK_SCRIPT % fields, encoding="ascii")
    command = ["wrk", "-t1", f"-c{spec.connections}", f"-d{spec.duration_s:.0f}s", f"--timeout={spec.timeout_s:.0f}s"]
    return [*command, "-s", str(script), str(split(spec.url))], lambda: read_wrk(_text(out))


def _argument(text: str) -> str:
    """An argument of a command that reaches it as the Latin-1 bytes of `text`."""
    return os.fsdecode(text.encode("latin-1"))


def _lua(text: bytes) -> str:
    """A Lua string of any bytes."""
    return '"' + "".join(f"\\{byte:03d}" for byte in text) + '"'


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError as error:
        raise EngineError(f"the engine wrote no result: {error}") from error


def read_wrk(text: str) -> Found:
    """What the `done` hook wrote. wrk adds to its latencies those it thinks a stall hid, so they are more."""
    doc = json.loads(text)
    errors = doc["errors"]
    return Found(
        requests=doc["requests"] - errors["status"],
        latencies=Counter({int(us): int(count) for us, count in doc["latency"]}),
        errors={
            "refused": errors["connect"],
            "reset": errors["read"] + errors["write"],
            "timeout": errors["timeout"],
            "status": errors["status"],
        },
        received=doc["bytes"],
        elapsed_s=doc["duration_us"] / 1e6,
        per_100ms=[],
    )


def _h2load(spec: LoadSpec, folder: Path) -> tuple[list[str], Callable[[], Found]]:
    log, url = folder / "requests.tsv", split(spec.url)
    command = ["h2load", "--h1", "-t1", f"-c{spec.connections}", f"-D{spec.duration_s * 1000:.0f}ms"]
    command += [f"--log-file={log}", *(_argument(f"-H{name}: {value}") for name, value in spec.headers)]
    if spec.method == "POST":
        (folder / "body").write_bytes(spec.body)
        command.append(f"-d{folder / 'body'}")
    if spec.tls.server_name and url.scheme == "https":
        command.append(f"--sni={spec.tls.server_name}")
    return [*command, str(url)], lambda: read_h2load(_text(log), spec)


def read_h2load(text: str, spec: LoadSpec) -> Found:
    """What the log of requests says: start (us since the epoch), status (-1: failed), duration (us)."""
    if not text:
        raise EngineError(f"h2load finished no request to {spec.url}")
    rows = [tuple(map(int, line.split("\t")[:3])) for line in text.splitlines()]
    right = [(start, us) for start, status, us in rows if status == spec.expect.status]
    failed = sum(status == -1 for _, status, _ in rows)
    first = min(start for start, _, _ in rows)
    buckets = Counter((start + us - first) // 100_000 for start, us in right)
    return Found(
        requests=len(right),
        latencies=Counter(us for _, us in right),
        errors={"reset": failed, "status": len(rows) - len(right) - failed},
        received=None,
        elapsed_s=spec.duration_s,
        per_100ms=[buckets[i] for i in range(max(buckets, default=-1) + 1)],
    )


ENGINES: dict[str, Callable[[LoadSpec, Path], tuple[list[str], Callable[[], Found]]]] = {
    "wrk": _wrk,
    "h2load": _h2load,
}
