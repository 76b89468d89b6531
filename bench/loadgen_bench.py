"""The load generator beside wrk and beside an asyncio client, interleaved, as ratios (`make bench-loadgen`).

Servers: the null responder that ships with the generator, and the fastest raw server of the catalogue that
installs from a wheel (freastal, else granian), in an environment of its own under .cache/. Client and server
are pinned to one CPU each. For every shape the generators take turns, so that a drift of the machine hits
all; what is printed is the median of the ratios of neighbours, never a ratio of medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from loadgen.ceiling import certificate, responder, two_cpus
from loadgen.client import Outgoing, wait
from loadgen.contract import Expect, LoadSpec, Request, Tls
from loadgen.run import load

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".cache" / "bench-loadgen"
ASYNCIO = ROOT / "bench" / "loadgen_asyncio.py"
SECONDS = 1.0  # wrk takes whole seconds only


@dataclass(frozen=True)
class Target:
    """A URL with its right answer, and how the table calls it."""

    server: str
    url: str
    body: bytes
    ca: str | None = None


@dataclass(frozen=True)
class Turn:
    """One slice of one generator: answers a second, CPU microseconds a request in user space and kernel."""

    rps: float
    user_us: float = 0.0
    system_us: float = 0.0

    @property
    def cpu_us(self) -> float:
        return self.user_us + self.system_us


class Starved(Exception):
    """A slice without one answer: on a busy machine somebody else had the CPU all the time."""


def spec_of(target: Target, connections: int, cpu: int | None) -> LoadSpec:
    return LoadSpec(
        url=target.url,
        connections=connections,
        duration_s=SECONDS,
        warmup_s=0.1,
        expect=Expect(200, target.body),
        tls=Tls(ca=target.ca),
        cpus=() if cpu is None else (cpu,),
    )


def turn(spec: LoadSpec) -> Turn:
    result = load(spec)
    if result.wrong:
        raise SystemExit(f"{spec.engine} on {spec.url}: {result.errors}, {result.first_error}")
    if not result.requests:
        raise Starved
    client = result.client
    return Turn(result.rps, client.user_s / result.requests * 1e6, client.system_s / result.requests * 1e6)


def asyncio_turn(spec: LoadSpec) -> Turn:
    host, _, rest = spec.url.removeprefix("http://").partition(":")
    port, _, path = rest.partition("/")
    pin = ["taskset", "-c", str(spec.cpus[0])] if spec.cpus and shutil.which("taskset") else []
    command = [*pin, sys.executable, str(ASYNCIO), host, port, f"/{path}", str(spec.connections), str(SECONDS)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return Turn(found["requests"] / found["elapsed_s"])


def one_round(spec: LoadSpec, *, plain: bool, wrk_first: bool) -> tuple[Turn, Turn, Turn | None]:
    """A slice of each: ours, wrk's, and over plain HTTP the asyncio client's."""
    wrk = replace(spec, engine="wrk", warmup_s=0.0)
    first, second = (turn(wrk), turn(spec)) if wrk_first else (turn(spec), turn(wrk))
    own, other = (second, first) if wrk_first else (first, second)
    return own, other, asyncio_turn(spec) if plain else None


def row(target: Target, connections: int, pairs: int, cpu: int | None) -> str:
    """Measure one shape; its line of the table."""
    spec = spec_of(target, connections, cpu)
    plain = target.ca is None
    turns: list[tuple[Turn, Turn, Turn | None]] = []
    while len(turns) < pairs:
        with suppress(Starved):
            turns.append(one_round(spec, plain=plain, wrk_first=len(turns) % 2 == 1))
    own, other = [a for a, _, _ in turns], [b for _, b, _ in turns]
    against_wrk = statistics.median(a.rps / b.rps for a, b, _ in turns)
    against_asyncio = f"{statistics.median(a.rps / c.rps for a, _, c in turns if c):8.2f}" if plain else f"{'':8}"
    cpu_against_wrk = statistics.median(a.cpu_us / b.cpu_us for a, b, _ in turns)
    cells = [
        statistics.median(getattr(t, field) for t in side)
        for field in ("user_us", "system_us")
        for side in (own, other)
    ]
    return (
        f"{target.server:14} {len(target.body):>6} {connections:>4} {statistics.median(t.rps for t in own):>9,.0f} "
        f"{against_wrk:>6.2f} {against_asyncio} {cpu_against_wrk:>5.2f} "
        f"{cells[0]:>8.2f} {cells[1]:>5.2f} {cells[2]:>10.2f} {cells[3]:>6.2f}"
    )


HEADER = (
    f"{'server':14} {'body':>6} {'conn':>4} {'rps':>9} {'/ wrk':>6} {'/asyncio':>8} {'CPU':>5} "
    f"{'user us':>8} {'wrk':>5} {'kernel us':>10} {'wrk':>6}"
)


@contextmanager
def null_targets(sizes: list[int], cert: Path | None, cpu: int | None) -> Iterator[list[Target]]:
    scheme, name = ("http", "null") if cert is None else ("https", "null, TLS")
    with ExitStack() as stack:
        ports = [(size, stack.enter_context(responder(size, cert, cpu))) for size in sizes]
        ca = None if cert is None else str(cert)
        yield [Target(name, f"{scheme}://127.0.0.1:{port}/", b"x" * size, ca) for size, port in ports]


def install(package: str) -> bool:
    """Whether `package` is now in the environment; only wheels, so that nothing is compiled."""
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "-q", "--only-binary", ":all:", package]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def server_command(python: str, port: int) -> tuple[str, list[str]] | None:
    """Name and command of the fastest server that installs for this Python; None where none does."""
    subprocess.run([python, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
    python = str(ENVIRONMENT / "bin" / "python")
    where = ["--host", "127.0.0.1", "--port", str(port)]
    if install("freastal==0.0.3"):
        return "freastal/wsgi", [python, "-m", "launch.serve_freastal", *where, "--interface", "wsgi", "raw_wsgi:app"]
    if install("granian==2.8.9"):
        options = ["--interface", "rsgi", "--no-access-log", "--log-level", "error"]
        return "granian/rsgi", [python, "-m", "granian", *where, *options, "raw_rsgi:app"]
    return None


@contextmanager
def server_targets(python: str, sizes: list[int], cpu: int | None) -> Iterator[list[Target]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = server_command(python, port)
    if found is None:
        print("no server of the catalogue installs here: the null responder only")
        yield []
        return
    name, command = found
    with subprocess.Popen(command, cwd=ROOT / "images" / "apps", stdout=subprocess.DEVNULL) as process:
        try:
            if cpu is not None:
                os.sched_setaffinity(process.pid, (cpu,))
            urls = [f"http://127.0.0.1:{port}/{'items/42' if size == 23 else f'bytes/{size}'}" for size in sizes]
            yield [Target(name, url, first_body(url)) for url in urls]
        finally:
            process.terminate()
            process.wait()


def first_body(url: str) -> bytes:
    waited = wait(Outgoing(Request(url=url)), Expect(200), 10)
    if not waited.ok or not waited.answer:
        raise SystemExit(f"{url} gave no answer: {waited.error or waited.answer}")
    return waited.answer.body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5, help="turns of each generator in each shape (default 5)")
    parser.add_argument("--connections", default="8,32,128")
    parser.add_argument("--bodies", default="23,12000", help="bytes of the answers' bodies")
    parser.add_argument("--server-python", default=sys.executable, help="runs the server (freastal needs 3.13)")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit(
            "wrk is not installed: apt-get install wrk, or run this in the loadgen image with SECOND_OPINION=1"
        )
    connections = [int(n) for n in options.connections.split(",")]
    sizes = [int(n) for n in options.bodies.split(",")]
    client, server = two_cpus()
    began = time.monotonic()
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    print(f"client on CPU {client}, server on CPU {server}")
    print(HEADER)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        targets = list(stack.enter_context(null_targets(sizes, None, server)))
        targets += stack.enter_context(server_targets(options.server_python, sizes, server))
        targets += stack.enter_context(null_targets(sizes[:1], certificate(Path(folder)), server))
        for target, n in product(targets, connections):
            print(row(target, n, options.pairs, client), flush=True)
    print(f"{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
