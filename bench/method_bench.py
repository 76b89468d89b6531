"""Calibration: how often the method calls a server different from itself, how often it finds 5 % (`make bench-method`).

Each session measures three sides that are the same server of the catalogue, launched apart: `baseline`, `again` (the
same) and `slow` (an app whose request costs 5 % more CPU). It does so twice: by the product's own code (fresh starts,
slices in random order, `stats.ratio`), and the usual way (whole runs, one server after the other; what is called one
run each are the two runs that stand side by side). A coin from the session's number says which way goes first, and
from which end the usual way begins. Each session is a JSON line, written when it is whole: stop it at any time, and
start it again to go on.

The slow-down: a request of /cpu/N costs a + bN. Slices of /cpu/0 and /cpu/N in turns give a and b before the first
session, and `slow` asks for the M with a + bM = 1.05 (a + bN), so the whole request costs 5 % more, not the loop alone.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from bench.console import finish, say, tell
from bench.lines import append_line, read_lines, rounded
from bench.method_table import AGAIN, BASELINE, SLOW, Session, table
from bench.sides import Sides, calibrate, matrix_of, opened, sides_of, slowed, started
from bench.slices import Slice, slice_of
from orchestrator.engines.protocol import Engine
from orchestrator.errors import LoadFailed, MatrixError, SpecError
from orchestrator.images.plan import ROOT
from orchestrator.matrix.models import Schedule
from orchestrator.probes.load.measure import measure_round

OUT = ROOT / "results" / "method.jsonl"
RUNS = 3
WARMUP_S, FIRST_WARMUP_S, USUAL_WARMUP_S = 0.1, 0.5, 1.0
CALIBRATION_PAIRS, CALIBRATION_SLICE_S = 10, 0.5
ATTEMPTS = 3
COMMAND = shlex.join(["python", "-m", "bench.method_bench", *sys.argv[1:]])

T = TypeVar("T")


# --- one session ------------------------------------------------------------------------------------------------------


def measure_ours(engine: Engine, sides: Sides) -> dict[str, list[list[Slice]]]:
    """By side, the slices of each round, from the product's own rounds."""
    found: dict[str, list[list[Slice]]] = {name: [] for name in sides.cells}
    for number in range(1, sides.plan.schedule.rounds + 1):
        rounds = measure_round(engine, sides.plan, number, tell)
        for name, cell in sides.cells.items():
            if failure := rounds[cell.id].failure:
                raise LoadFailed(f"{name}: {failure.reason}")
            found[name].append([slice_of(one.load) for one in rounds[cell.id].slices])
    return found


def measure_usual(engine: Engine, sides: Sides, order: tuple[str, ...], run_s: float) -> dict[str, list[Slice]]:
    """RUNS whole runs of each side, one server after the other."""
    found = {}
    for name in order:
        with started(engine, sides, name) as server:
            warmups = (USUAL_WARMUP_S, *(WARMUP_S,) * (RUNS - 1))
            found[name] = [server.slice(warmup_s, run_s) for warmup_s in warmups]
    return found


def turns(number: int) -> tuple[bool, tuple[str, ...]]:
    """Whether ours goes first in a session, and in which order the usual way takes the sides: neighbours compare."""
    coins = random.Random(f"method/{number}")
    order = (AGAIN, BASELINE, SLOW) if coins.random() < 0.5 else (SLOW, BASELINE, AGAIN)
    return coins.random() < 0.5, order


def session(engine: Engine, sides: Sides, number: int, settings: Mapping[str, Any]) -> Session:
    """Measure a session. Raises MatrixError where a server fails or a request gets no right answer."""
    began = time.monotonic()
    ours_first, order = turns(number)
    seeded, schedule = sides.with_seed(number), sides.plan.schedule
    ours_s = schedule.rounds * schedule.slices * schedule.slice_s
    mine = measure_ours(engine, seeded) if ours_first else {}
    usual = measure_usual(engine, sides, order, ours_s / RUNS)
    mine = mine or measure_ours(engine, seeded)
    return Session(number, settings, mine, usual, ours_s, ours_s, time.monotonic() - began)


# --- many -------------------------------------------------------------------------------------------------------------


def schedule_of(options: argparse.Namespace) -> Schedule:
    """Raises SpecError where there are too few rounds or slices for an interval."""
    slices = round(options.seconds / (options.rounds * options.slice))
    if options.rounds < 2 or slices < 2:
        raise SpecError(
            f"{options.rounds} rounds of {slices} slices give no interval",
            next_step="two of each are needed: more --seconds, or a shorter --slice",
        )
    return Schedule(
        rounds=options.rounds, slices=slices, slice_s=options.slice, warmup_s=WARMUP_S, first_warmup_s=FIRST_WARMUP_S
    )


def asked(options: argparse.Namespace, engine: Engine) -> dict[str, Any]:
    """What must be the same in all sessions of a file."""
    return {
        "server": options.server,
        "engine": f"{engine.facts.name} {engine.facts.version}",
        "cpus": len(engine.facts.cpus),
        "connections": options.connections,
        "slow_down": options.slow_down,
        "iterations": options.iterations,
        "schedule": schedule_of(options).model_dump(mode="json", include={"rounds", "slices", "slice_s", "warmup_s"}),
    }


def settings_of(options: argparse.Namespace, engine: Engine, earlier: list[Session]) -> dict[str, Any]:
    """What is asked for and the iterations of `slow`: those of earlier sessions, else found by measuring.

    Raises LoadFailed where the earlier sessions were measured in another way.
    """
    wanted = asked(options, engine)
    if not earlier:
        return wanted | measured_iterations(options, engine) | {"command": COMMAND}
    known = dict(earlier[-1].settings)
    other = [name for name, value in wanted.items() if known.get(name) != value]
    if other:
        raise LoadFailed(
            f"{options.out} holds sessions with another {', '.join(other)}", next_step="name another file: --out FILE"
        )
    return known


def measured_iterations(options: argparse.Namespace, engine: Engine) -> dict[str, Any]:
    """The iterations of `slow`, and what a request costs in µs without the loop and with it."""
    counts = {"empty": 0, BASELINE: options.iterations}
    sides = sides_of(engine, matrix_of(options.server, counts, options.connections, schedule_of(options)), tell)
    work = partial(calibrate, engine, sides, pairs=CALIBRATION_PAIRS, slice_s=CALIBRATION_SLICE_S)
    empty_us, full_us = patiently("calibration", work)
    slow = slowed(options.iterations, empty_us, full_us, options.slow_down)
    return rounded({"slow_iterations": slow, "empty_us": empty_us, "full_us": full_us}, 4)  # type: ignore[no-any-return]


def sessions(engine: Engine, options: argparse.Namespace, earlier: list[Session]) -> Iterator[Session]:
    """Those that are missing. Raises MatrixError."""
    settings = settings_of(options, engine, earlier)
    say(described(settings))
    counts = {BASELINE: options.iterations, AGAIN: options.iterations, SLOW: settings["slow_iterations"]}
    matrix = matrix_of(options.server, counts, options.connections, schedule_of(options))
    sides = sides_of(engine, matrix, tell)
    for number in range(len(earlier) + 1, options.sessions + 1):
        yield patiently(f"session {number}", partial(session, engine, sides, number, settings))


def patiently(name: str, work: Callable[[], T]) -> T:
    """Do it again where it fails; the error of the last of ATTEMPTS is raised."""
    for _ in range(ATTEMPTS - 1):
        try:
            return work()
        except MatrixError as error:
            say(f"{name} failed, and is tried again: {error}")
    return work()


def described(settings: Mapping[str, Any]) -> str:
    """One line about what is measured."""
    loop, iterations = 1 - settings["empty_us"] / settings["full_us"], settings["iterations"]
    return (
        f"{settings['server']} on {settings['engine']}, {settings['cpus']} CPUs, "
        f"{settings['connections']} connections; "
        f"/cpu/{iterations} (the loop is {loop:.0%} of {settings['full_us']:.0f} us) "
        f"against /cpu/{settings['slow_iterations']} for {settings['slow_down']:.0%} more"
    )


def run(options: argparse.Namespace) -> None:
    """Measure the sessions that the file has not yet."""
    earlier = [Session.from_json(line) for line in read_lines(options.out)]
    if len(earlier) >= options.sessions:
        return
    with opened(options.engine, f"bench-method-{os.getpid()}") as engine:
        say(f"engine: {engine.facts.name} {engine.facts.version} ({engine.facts.why})")
        engine.prepare(say)
        for made in sessions(engine, options, earlier):
            append_line(options.out, rounded(made.as_json()))
            left_s = (options.sessions - made.number) * made.took_s
            say(f"session {made.number} of {options.sessions}: {made.took_s:.0f} s, {left_s / 60:.0f} minutes left")


def report(path: Path) -> str:
    """The tables of a file, and the command that began it. Raises LoadFailed where it holds no session."""
    found = [Session.from_json(line) for line in read_lines(path)]
    if not found:
        raise LoadFailed(f"{path} holds no session")
    return f"$ {found[0].settings['command']}\n{described(found[-1].settings)}; {len(found)} sessions\n\n{table(found)}"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--sessions", type=int, default=40, metavar="N", help="so many in the file at the end (default 40)")
    add("--engine", choices=("auto", "docker", "local"), default="auto")
    add("--server", default="uvicorn/standard", help="of matrix.yaml (default uvicorn/standard), with its raw app")
    add("--seconds", type=float, default=15, help="of load per server and method in a session (default 15)")
    add("--rounds", type=int, default=5, help="fresh starts for ours (default 5)")
    add("--slice", type=float, default=0.5, metavar="S", help="seconds of a slice of ours (default 0.5)")
    add("--connections", type=int, default=32)
    add("--iterations", type=int, default=5000, metavar="N", help="of the app's loop (default 5000)")
    add("--slow-down", type=float, default=0.05, metavar="SHARE", help="default 0.05")
    add("--out", type=Path, default=OUT, metavar="FILE", help="gets a line per session (default results/method.jsonl)")
    add("--report", type=Path, metavar="FILE", help="measure nothing: the tables of this file again")
    return parser.parse_args()


def main() -> int:
    options = parsed()
    if options.report is not None:
        return finish(lambda: None, lambda: report(options.report))
    return finish(lambda: run(options), lambda: report(options.out))


if __name__ == "__main__":
    raise SystemExit(main())
