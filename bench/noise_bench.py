"""How to be more certain in the same time: raw slices of several lengths and orders, and all estimators on them.

Two launches of the same server (`bench/sides.py`) are loaded in turns. A round starts them afresh and measures a block
of each order and length, each with the same seconds of load. Each block is a JSON line: stop it at any time, and start
it again to go on. `--report FILE` prints the table from the lines alone; `--simulate` measures intervals on simulated
slices. The sentinel is the load generator's null responder, or with `--sentinel server` a third launch of the same.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import simulate
from bench.console import finish, say, tell
from bench.lines import append_line, read_lines, rounded
from bench.noise_table import ABOVE, BELOW, DESIGNS, SENTINEL, Block, Design, Turn, table
from bench.sides import Server, matrix_of, null_server, opened, sides_of, started
from orchestrator.engines.protocol import Engine
from orchestrator.errors import LoadFailed
from orchestrator.images.plan import ROOT
from orchestrator.matrix.models import Schedule

OUT = ROOT / "results" / "noise.jsonl"
WARMUP_S, FIRST_WARMUP_S = 0.05, 1.0
BODY_BYTES = 23


class Place(NamedTuple):
    """Where a block stands in the data set."""

    settings: Mapping[str, Any]
    round: int
    design: Design
    slice_s: float


def order_of(design: Design, passes: int, seed: str) -> list[str]:
    """Who has the slices of a block, in the order of time."""
    coins = random.Random(seed)
    orders = [coins.sample((ABOVE, BELOW), 2) for _ in range(passes)]
    if design == "abba":
        orders = [orders[at] if at % 2 == 0 else orders[at - 1][::-1] for at in range(passes)]
    flat = [side for order in orders for side in order]
    return [SENTINEL, *(name for side in flat for name in (side, SENTINEL))] if design == "sentinel" else flat


@contextmanager
def servers_of(engine: Engine, options: argparse.Namespace) -> Iterator[Mapping[str, Server]]:
    """The two sides and, where an order needs it, the sentinel, freshly started and warm."""
    names = [ABOVE, BELOW, *([SENTINEL] if options.sentinel == "server" else [])]
    counts = dict.fromkeys(names, options.iterations)
    sides = sides_of(engine, matrix_of(options.server, counts, options.connections, Schedule()), tell)
    with ExitStack() as stack:
        servers = {name: stack.enter_context(started(engine, sides, name)) for name in names}
        if "sentinel" in options.orders and SENTINEL not in servers:
            servers[SENTINEL] = stack.enter_context(null_server(engine, sides, BODY_BYTES, options.connections))
        for server in servers.values():
            server.slice(FIRST_WARMUP_S, 0.5)
        yield servers


def block(servers: Mapping[str, Server], at: Place, options: argparse.Namespace) -> Block:
    """One block of a round. Raises LoadFailed."""
    began = time.monotonic()
    passes = max(2, round(options.seconds / options.rounds / at.slice_s))
    order = order_of(at.design, passes, f"noise/{at.round}/{at.design}/{at.slice_s}")
    turns = [Turn(name, servers[name].slice(WARMUP_S, at.slice_s)) for name in order]
    return Block(at.settings, at.round, at.design, at.slice_s, turns, time.monotonic() - began)


def settings_of(options: argparse.Namespace, engine: Engine) -> dict[str, Any]:
    """What must be the same in all blocks of a file."""
    names = ("server", "connections", "iterations", "seconds", "rounds", "sentinel")
    asked = {name: getattr(options, name) for name in names}
    return asked | {"engine": f"{engine.facts.name} {engine.facts.version}", "warmup_s": WARMUP_S}


def run(options: argparse.Namespace) -> None:
    """Measure the rounds that the file has not yet begun. Raises MatrixError."""
    earlier = [Block.from_json(line) for line in read_lines(options.out)]
    first = max((one.round for one in earlier), default=0) + 1
    if first > options.rounds:
        return
    with opened(options.engine, f"bench-noise-{os.getpid()}") as engine:
        say(f"engine: {engine.facts.name} {engine.facts.version} ({engine.facts.why})")
        settings = settings_of(options, engine)
        if earlier and dict(earlier[-1].settings) != settings:
            raise LoadFailed(f"{options.out} was measured in another way", next_step="name another file: --out FILE")
        engine.prepare(say)
        for number in range(first, options.rounds + 1):
            began = time.monotonic()
            one_round(engine, options, number, settings)
            took_s = time.monotonic() - began
            left_s = took_s * (options.rounds - number)
            say(f"round {number} of {options.rounds}: {took_s:.0f} s, {left_s / 60:.0f} minutes left")


def one_round(engine: Engine, options: argparse.Namespace, number: int, settings: Mapping[str, Any]) -> None:
    """Every block once, in an order of the round's own. A block that fails is left out; raises where all do."""
    places = [Place(settings, number, design, slice_s) for design in options.orders for slice_s in options.lengths]
    random.Random(f"noise/{number}").shuffle(places)
    failures = []
    with servers_of(engine, options) as servers:
        for at in places:
            try:
                append_line(options.out, rounded(block(servers, at, options).as_json()))
            except LoadFailed as error:
                failures.append(error)
                say(f"round {number}, {at.design}, {at.slice_s:g} s: left out: {error}")
    if len(failures) == len(places):
        raise failures[-1]


def report(path: Path, command: str) -> str:
    """The tables of a file, and how it was made. Raises LoadFailed where it holds nothing."""
    blocks = [Block.from_json(line) for line in read_lines(path)]
    if not blocks:
        raise LoadFailed(f"{path} holds no block")
    told = ", ".join(f"{name} {value}" for name, value in blocks[-1].settings.items())
    return f"$ {command}\n{told}\n\n{table(blocks)}"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--engine", choices=("auto", "docker", "local"), default="auto")
    add("--server", default="uvicorn/standard", help="of matrix.yaml (default uvicorn/standard), with its raw app")
    add("--seconds", type=float, default=60, help="of load per server for each order and length (default 60)")
    add("--rounds", type=int, default=6, help="fresh starts (default 6)")
    add("--lengths", type=_numbers, default=[0.1, 0.25, 0.5, 1.0], metavar="S,S", help="default 0.1,0.25,0.5,1")
    add("--orders", type=_orders, default=list(DESIGNS), metavar="NAME,…", help=f"default {','.join(DESIGNS)}")
    add("--sentinel", choices=("null", "server"), default="null")
    add("--connections", type=int, default=32)
    add("--iterations", type=int, default=0, metavar="N", help="of the app's loop (default 0: a plain request)")
    add("--out", type=Path, default=OUT, metavar="FILE", help="gets a line per block (default results/noise.jsonl)")
    add("--report", type=Path, metavar="FILE", help="measure nothing: the tables of this file again")
    add("--simulate", action="store_true", help="measure nothing: intervals on simulated slices")
    return parser.parse_args()


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _orders(text: str) -> list[str]:
    unknown = [part for part in text.split(",") if part not in DESIGNS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(DESIGNS)}")
    return text.split(",")


def main() -> int:
    options, command = parsed(), shlex.join(["python", "-m", "bench.noise_bench", *sys.argv[1:]])
    if options.simulate:
        for line in (f"$ {command}", *simulate.lines()):
            print(line, flush=True)
        return 0
    if options.report is not None:
        return finish(lambda: None, lambda: report(options.report, command))
    return finish(lambda: run(options), lambda: report(options.out, command))


if __name__ == "__main__":
    raise SystemExit(main())
