"""`loadgen URL`: a small load generator for people."""

from __future__ import annotations

import argparse
import base64
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadgen import contract
from loadgen.contract import Connections, Latency, LoadResult, LoadSpec
from loadgen.errors import LoadgenError, SpecError
from loadgen.run import load
from loadgen.spec import read_spec

_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")
CLIENT_BOUND = 0.85  # of a core: above it the generator itself may be the limit
EPILOG = """examples:
  loadgen localhost:8000/items/42 -c 64 -d 10           64 connections, each kept busy for 10 s
  loadgen localhost:8000/ --rate 2000                   2,000 requests a second, answered or not: for latencies
  loadgen localhost:8000 -p /items/1 -p '/find?q=a b'   two paths in turn; what a URL cannot hold is percent-encoded
  loadgen localhost:8000/echo -X POST -b @body.json -H 'Content-Type: application/json' --expect-body @answer.json
  loadgen https://localhost:8443/ --ca ca.pem --json    the LoadResult for a program

other commands:
  loadgen agent      serve requests in JSON lines on standard input (used by the matrix)
  loadgen ceiling    measure what this generator can do here, against a null responder
  loadgen null       run the null responder alone

exit codes:
  0    every answer was right, and every connection had one
  1    errors, connections without an answer while it counted, or no answer at all
  2    what was asked makes no sense: an option, a URL, a host without an address, a CA file that cannot be read
  3    the load could not be run: wrk or h2load missing or failed, a process of its own ended, too few open files
  130  interrupted"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="loadgen",
        description="Put load on an HTTP/1.1 server and check every answer.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("url", help="http:// or https://, with path and query")
    add("-c", "--connections", type=int, default=16, help="kept open, all busy at once (default 16)")
    add("-d", "--duration", type=float, default=5.0, metavar="S", help="seconds that count (default 5)")
    add("-w", "--warmup", type=float, default=0.5, metavar="S", help="seconds before that (default 0.5)")
    add("-r", "--rate", type=float, help="open loop: so many requests a second, whatever the server does")
    add("--poisson", action="store_true", help="open loop with exponential gaps instead of equal ones")
    add("--seed", type=int, default=0, help="of the exponential gaps")
    add("-X", "--method", default="GET")
    add("-H", "--header", action="append", default=[], metavar="'NAME: VALUE'")
    add("-b", "--body", default="", metavar="TEXT|@FILE", help="of the request")
    add("-p", "--path", action="append", default=[], help="ask several paths in turn instead of the URL's")
    add("--expect-status", type=int, default=200, metavar="N", help="of a right answer (default 200)")
    add("--expect-body", metavar="TEXT|@FILE", help="of a right answer (default: any)")
    add("--timeout", type=float, default=10.0, metavar="S", help="for one answer (default 10, at most 60)")
    add("--processes", type=int, default=1, help="that share the connections (default 1)")
    add("--cpus", default="", metavar="N,N", help="pin the processes to these CPUs")
    add("--engine", default="builtin", help="builtin (default), wrk or h2load")
    add("--ca", metavar="FILE", help="verify https against this CA")
    add("--insecure", action="store_true", help="do not verify https")
    add("--json", action="store_true", help="print the LoadResult, nothing else")
    return made


def spec_of(options: argparse.Namespace) -> LoadSpec:
    """The spec that the options mean. Raises SpecError."""
    expected = None if options.expect_body is None else _base64(options.expect_body)
    return read_spec(
        {
            "url": options.url if _SCHEME.match(options.url) else f"http://{options.url}",
            "method": options.method,
            "headers": [_header(text) for text in options.header],
            "body": _base64(options.body),
            "paths": [{"path": path} for path in options.path],
            "connections": options.connections,
            "duration_s": options.duration,
            "warmup_s": options.warmup,
            "loop": "closed" if options.rate is None else "open",
            "rate": options.rate,
            "arrivals": "poisson" if options.poisson else "constant",
            "seed": options.seed,
            "expect": {"status": options.expect_status, "body": expected},
            "timeout_s": options.timeout,
            "tls": {"ca": options.ca, "verify": not options.insecure},
            "processes": options.processes,
            "cpus": _cpus(options.cpus),
            "engine": options.engine,
        }
    )


def _base64(text: str) -> str:
    try:
        data = Path(text[1:]).read_bytes() if text.startswith("@") else os.fsencode(text)
    except OSError as error:
        raise SpecError(f"{text}: {error.strerror}") from error
    return base64.b64encode(data).decode()


def _header(text: str) -> list[str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise SpecError(f"--header: {text!r} is not 'NAME: VALUE'")
    return [name, value.strip(" \t")]


def _cpus(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part]
    except ValueError:
        raise SpecError(f"--cpus: {text!r} is not a list like 0,1") from None


@contextmanager
def progress(spec: LoadSpec, marks: list[int]) -> Iterator[None]:
    """One line on a terminal, twice a second: answers so far (of one process) and the time left."""
    over = threading.Event()

    def show() -> None:
        while not over.wait(0.5):
            passed = len(marks) / 100
            counted = f"{marks[-1]:,} answers, {marks[-1] / passed:,.0f} a second" if marks else "warming up"
            sys.stderr.write(f"\r\033[K{counted}, {max(spec.duration_s - passed, 0):.0f} s left")
            sys.stderr.flush()
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()

    thread = threading.Thread(target=show, daemon=True)
    if sys.stderr.isatty() and spec.engine == "builtin" and spec.processes == 1:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if thread.is_alive():
            thread.join()


def summary(spec: LoadSpec, result: LoadResult) -> str:
    """The result for people."""
    share = result.client.share
    loop = f"open loop at {spec.rate:g} a second" if spec.rate else "closed loop"
    checked = "status and body" if spec.expect.body is not None else "status"
    bound = "≥ " if share > CLIENT_BOUND else ""
    answers = f"{result.requests:,} answer{'s' * (result.requests != 1)} with the right {checked}"
    opened = f"{spec.connections} connection{'s' * (spec.connections != 1)}"
    lines = [
        f"{spec.method} {spec.url}: {loop}, {opened}, {result.elapsed_s:.2f} s",
        f"  throughput   {bound}{result.rps:,.0f} a second; {answers}",
        f"  latency      {_latency(result.latency)}",
    ]
    if result.service:
        lines.append(f"  service      {_latency(result.service)} (from the real sending)")
    lines += [
        f"  connections  {_connections(result.connections)}",
        f"  errors       {_errors(result)}",
        f"  client       {share:.0%} of a core" + (", which limits this figure" if bound else ""),
    ]
    if unanswered := _unanswered(spec, result):
        lines.append(f"  unanswered   {unanswered}")
    if result.client_late and (late := result.late):
        lines.append(f"  client late  {late.requests} requests over {late.bound_us:g} us late: do not trust it")
    return "\n".join(lines)


def _latency(latency: Latency) -> str:
    points = {"mean": latency.mean, **{f"p{p}": us for p, us in latency.percentiles.items()}, "max": latency.max}
    return "  ".join(f"{name} {_time(us)}" for name, us in points.items() if us is not None) or "none"


def _time(us: float) -> str:
    for limit, divisor, unit in ((1e3, 1, "us"), (1e6, 1e3, "ms")):
        if us < limit:
            return f"{us / divisor:.3g} {unit}"
    return f"{us / 1e6:.3g} s"


def _connections(counts: Connections) -> str:
    text = f"{counts.opened} opened"
    if counts.reconnects:
        text += f", {counts.reconnects:,} of them while it counted"
    if counts.per_request:
        text += f" ({counts.per_request:.2g} per answer)"
    return text


def _unanswered(spec: LoadSpec, result: LoadResult) -> str:
    """What to say of connections that had no answer; wrk and h2load do not tell."""
    silent = result.unanswered
    if not silent or not silent.connections:
        return ""
    oldest = f"; the oldest request was open for {_time(silent.oldest_us)}" if silent.oldest_us else ""
    return f"{silent.connections} of {spec.connections} connections while it counted{oldest}"


def _errors(result: LoadResult) -> str:
    counted = [f"{count:,} {kind}" for kind, count in result.errors.items() if count]
    first = f"; the first: {result.first_error.detail}" if result.first_error else ""
    return ", ".join(counted) + first if counted else "none"


def main(argv: list[str]) -> int:
    """`loadgen URL`; the exit code, as `--help` tells it."""
    made = parser()
    options = made.parse_args(argv)
    marks: list[int] = []
    try:
        spec = spec_of(options)
        with progress(spec, marks):
            result = load(spec, marks=marks)
    except SpecError as error:
        made.error(str(error))
    except LoadgenError as error:
        print(f"loadgen: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    print(contract.encode(result) if options.json else summary(spec, result))
    fine = result.requests and not result.wrong and not _unanswered(spec, result)
    return 0 if fine else 1
