"""`loadgen ceiling`: what the generator itself can do on this machine, shape by shape."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from msgspec import to_builtins

from loadgen import contract
from loadgen.affinity import allowed
from loadgen.contract import CeilingCpus, Ceilings, Expect, LoadResult, LoadSpec, ShapeCeiling, Tls
from loadgen.errors import EngineError, SpecError
from loadgen.options import several, whole
from loadgen.run import load
from loadgen.spec import read_spec


@dataclass(frozen=True)
class Shape:
    """What decides the cost of a request for the generator. `body_bytes`: of the answer."""

    connections: int
    body_bytes: int
    tls: bool


def measure(shapes: list[Shape], *, duration_s: float, rounds: int) -> Ceilings:
    """The ceiling of each shape: the median requests a second of `rounds` slices, shapes interleaved.

    Client and responder are pinned to CPUs of their own where there are two. Raises EngineError, or SpecError.
    """
    client, server = two_cpus()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cert = certificate(folder) if any(shape.tls for shape in shapes) else None
        kinds = dict.fromkeys((shape.body_bytes, shape.tls) for shape in shapes)
        ports = {
            (size, tls): stack.enter_context(responder(size, cert if tls else None, server)) for size, tls in kinds
        }
        specs = [_spec(shape, ports[shape.body_bytes, shape.tls], cert, client, duration_s) for shape in shapes]
        slices = [[load(spec) for spec in specs] for _ in range(rounds)]
    return Ceilings(
        cpus=CeilingCpus(client=client, responder=server),
        duration_s=duration_s,
        shapes=tuple(_ceiling(*pair) for pair in zip(shapes, zip(*slices, strict=True), strict=True)),
    )


def _ceiling(shape: Shape, results: Sequence[LoadResult]) -> ShapeCeiling:
    wrong = next((result.first_error for result in results if result.first_error), None)
    if wrong:
        raise EngineError(f"the null responder gave a wrong answer: {wrong.detail}")
    requests = sum(result.requests for result in results)
    user_s = sum(result.client.user_s for result in results)
    cpu_s = sum(result.client.system_s for result in results) + user_s
    return ShapeCeiling(
        connections=shape.connections,
        body_bytes=shape.body_bytes,
        tls=shape.tls,
        rps=statistics.median(result.rps for result in results),
        rps_slices=tuple(result.rps for result in results),
        client_share=statistics.median(result.client.share for result in results),
        client_us_per_request=cpu_s / requests * 1e6,
        client_user_us_per_request=user_s / requests * 1e6,
    )


def two_cpus() -> tuple[int | None, int | None]:
    """The CPUs to pin the client and the server to; None, None where there are no two."""
    cpus = allowed()
    return (cpus[-1], cpus[0]) if len(cpus) > 1 else (None, None)


def _spec(shape: Shape, port: int, cert: Path | None, cpu: int | None, duration_s: float) -> LoadSpec:
    spec = LoadSpec(
        url=f"{'https' if shape.tls else 'http'}://127.0.0.1:{port}/",
        connections=shape.connections,
        duration_s=duration_s,
        warmup_s=min(0.2, duration_s),
        expect=Expect(200, b"x" * shape.body_bytes),
        tls=Tls(ca=str(cert) if shape.tls else None),
        cpus=() if cpu is None else (cpu,),
    )
    return read_spec(to_builtins(spec))  # its form too: durations are as typed on the command line


def certificate(folder: Path) -> Path:
    """A throw-away certificate for 127.0.0.1, its key beside it."""
    made = folder / "cert.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(folder / "key.pem"), "-out", str(made)]
    try:
        done = subprocess.run([*command.split(), *files], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise EngineError("shapes with TLS need the openssl command, which is not installed here") from None
    if done.returncode != 0:
        raise EngineError(f"openssl made no certificate: {done.stderr.strip()[-300:]}")
    return made


@contextmanager
def responder(body_bytes: int, cert: Path | None, cpu: int | None) -> Iterator[int]:
    """The port of a null responder in a process of its own."""
    command = [sys.executable, "-m", "loadgen", "null", "--body-bytes", str(body_bytes)]
    if cert is not None:
        command += ["--cert", str(cert), "--key", str(cert.with_name("key.pem"))]
    if cpu is not None:
        command += ["--cpu", str(cpu)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # it is a pipe
            line = process.stdout.readline()
            if not line:
                raise EngineError("the null responder did not start")
            yield int(line)
        finally:
            process.kill()


def main(argv: list[str]) -> int:
    """`loadgen ceiling`; the exit code."""
    about = "What this load generator can do here at the most, by shape of load: a responder that does nothing answers."
    parser = argparse.ArgumentParser(prog="loadgen ceiling", description=about)
    add = parser.add_argument
    connections, sizes = several(whole(1, 100_000)), several(whole(0, 2**30))
    add("-c", "--connections", type=connections, default=[1, 8, 32, 128], metavar="N,N", help="default 1,8,32,128")
    add("-b", "--body-bytes", type=sizes, default=[23, 12_000], metavar="N,N", help="default 23,12000")
    add("-d", "--duration", type=float, default=0.5, metavar="S", help="of one slice (default 0.5)")
    add("-n", "--rounds", type=whole(1, 1000), default=5, help="slices of each shape (default 5)")
    add("--tls", action="store_true", help="each shape over TLS too")
    add("--json", action="store_true")
    options = parser.parse_args(argv)
    schemes = [False, True] if options.tls else [False]
    shapes = [Shape(c, b, tls) for tls, b, c in product(schemes, options.body_bytes, options.connections)]
    try:
        found = measure(shapes, duration_s=options.duration, rounds=options.rounds)
    except SpecError as error:
        parser.error(str(error))
    except EngineError as error:
        print(f"loadgen: {error}", file=sys.stderr)
        return 3
    print(contract.encode(found) if options.json else table(found))
    return 0


def table(found: Ceilings) -> str:
    """The ceilings for people."""
    lines = [f"{'':5} {'body':>7} {'connections':>11} {'a second':>10} {'client':>7} {'CPU/request':>12} {'user':>8}"]
    lines += [
        f"{'https' if s.tls else 'http':5} {s.body_bytes:>7} {s.connections:>11} {s.rps:>10,.0f} "
        f"{s.client_share:>7.0%} {s.client_us_per_request:>9.2f} us {s.client_user_us_per_request:>5.2f} us"
        for s in found.shapes
    ]
    return "\n".join(lines)
