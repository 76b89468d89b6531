"""What the figures of a run rest on: engine, bases, Python, CPUs, schedule, and what was never to be measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.evidence.model import ImageFacts, Record, RunFile
from orchestrator.layout.text import count, listed, three
from orchestrator.matrix.cell import DOT
from orchestrator.probes.registry import with_ratios

DRY_RUN = "DRY RUN: every figure below is invented by the memory engine. Nothing was measured."


LEGEND = (
    "[low, high] is the 95 % interval over rounds and slices; — stands where there is no figure.",
    "A rank is the range of places that the intervals leave open: from 1 + the number of rows that lie wholly above, "
    "to the number of ranked rows less those that lie wholly below. Rows stand by their values, so that each stands at "
    "a place of its range; a wide interval makes a wide range.",
    "“≥”: a lower bound, since the load generator was the limit; “≤”: what a ratio refers to is one; “?”: both are.",
    "ceiling: requests/s as a share of what the load generator reached against its null responder in this run.",
    "p50 and p99 are taken under full load from a closed loop: they are mostly time spent waiting for a turn (queueing "
    "latency), not what a request costs a server at rest.",
    "CPU µs/req: CPU of the whole server tree for each right answer, in user space and in the kernel (system); "
    "req/CPU: answers for the same CPU, so that more is cheaper; switches: context switches of its threads. MB "
    "(1,000,000 bytes): resident set of the tree, idle before any load and at its largest under load; MB/worker: its "
    "proportional set over the workers. The cheapest row by CPU stands first.",
)
"""How to read any table."""
OPEN_LEGEND = (
    "Open loop: requests come in at random times, a share of what the closed loop answered. asked/s: how many; in "
    "time: how many of those had their answer before the end. Latencies count from the moment that a request was due: "
    "a stall is charged to every request that it delayed.",
)
"""How to read those of an open loop."""


@dataclass(frozen=True)
class LeftOut:
    """Servers, or cells, that the suite leaves out for one and the same reason."""

    names: tuple[str, ...]
    why: str


def banner(run: RunFile) -> str:
    """What heads every rendering of a dry run; "" for a measured one."""
    return DRY_RUN if run.engine.get("name") == "memory" else ""


def conditions(run: RunFile, records: Sequence[Record]) -> tuple[str, ...]:
    """One sentence for each thing that a reader must know before he reads a figure."""
    return tuple(_sentences(run, records))


def notes(records: Sequence[Record]) -> tuple[str, ...]:
    """How to read the tables, and what the matrix notes of its servers."""
    by_note: dict[str, list[str]] = {}
    for record in records:
        by_note.setdefault(record.note, []).append(f"{record.cell.server}/{record.cell.variant}")
    of_servers = [f"{listed(list(dict.fromkeys(names)))}: {note}." for note, names in by_note.items() if note]
    measured = with_ratios(records)
    opened = any(record.cell.open for record in measured)
    return (*(LEGEND if measured else ()), *(OPEN_LEGEND if opened else ()), *of_servers)


def left_out(run: RunFile) -> tuple[LeftOut, ...]:
    """By reason, in the order of the run."""
    names: dict[str, list[str]] = {}
    for item in run.left_out:
        names.setdefault(item["why"], []).append(item["id"].split(DOT)[0])
    return tuple(LeftOut(tuple(dict.fromkeys(servers)), why) for why, servers in names.items())


def _sentences(run: RunFile, records: Sequence[Record]) -> Iterator[str]:
    state = "complete" if run.complete else f"not complete: {_progress(run, records)} on record"
    yield f"Run {run.id} of suite {run.suite}, started {run.started}, {state}."
    if run.judged and run.judged.digest != run.code.get("digest"):
        measuring, judging = run.code.get("commit", "unknown"), run.judged
        yield f"Measured by the code of commit {measuring}; judged again by that of {judging.commit} at {judging.at}."
    engine = run.engine
    why = f": {engine['why']}" if engine.get("why") else ""
    yield f"Engine {engine.get('name')} {engine.get('version', '')}".rstrip() + why + "."
    yield from _bases(records)
    yield from _pythons(records)
    yield _cpus(run)
    if with_ratios(records):
        yield from _measuring(run, records)
    yield "Absolute figures are this machine's: compare rows of one table, never figures of two machines."


def _measuring(run: RunFile, records: Sequence[Record]) -> Iterator[str]:
    yield _schedule(run, records)
    if run.stopped:
        yield f"Why measuring ended: {run.stopped.rstrip('.')}."
    overhead, share = (run.costs.get(name) for name in ("overhead_s_per_cell", "orchestrator_cpu_share"))
    if overhead is not None and share is not None:
        yield (
            f"Overhead {three(overhead)} s per cell beside its timed stretches and warm-ups; "
            f"the orchestrator used {share:.1%} of a CPU while slices ran."
        )


def _progress(run: RunFile, records: Sequence[Record]) -> str:
    rounds = _rounds(records)
    planned = count(run.schedule.get("rounds", 0), "round")
    return f"{rounds} of {planned} and {len(records)} of {count(len(run.cells), 'cell')}"


def _bases(records: Sequence[Record]) -> Iterator[str]:
    images = [(record.cell.flavour, record.image) for record in records if record.image]
    yield from dict.fromkeys(_base(flavour, image) for flavour, image in images)


def _base(flavour: str, image: ImageFacts) -> str:
    note = f": {image.base_note}" if image.base_note else ""
    if image.standin:
        origin = "built from source" if image.standin == "musl" else "made from Debian packages"
        return f"Base of {flavour}: a stand-in {origin} ({image.base}), not an official image{note}."
    return f"Base of {flavour}: {image.base}{note}."


def _pythons(records: Sequence[Record]) -> Iterator[str]:
    """What the apps themselves reported, which a local engine may not share with the cell's name."""
    cells: dict[str, int] = {}
    for record in records:
        fingerprint = next((round_.fingerprint for round_ in record.rounds if round_.fingerprint), {})
        if fingerprint.get("python"):
            gil = " without the GIL" if fingerprint.get("gil") is False else ""
            name = f"{fingerprint.get('implementation', 'Python')} {fingerprint['python']}{gil}"
            cells[name] = cells.get(name, 0) + 1
    if cells:
        pythons = listed([f"{name} in {count(number, 'cell')}" for name, number in cells.items()])
        yield f"Python as the apps report it: {pythons}."


def _cpus(run: RunFile) -> str:
    placement, model = run.placement, run.machine.get("cpu_model") or "CPU of unknown model"
    if placement.get("shared"):
        return f"{model}: server and load generator had one CPU between them."
    server, client = (_numbers(placement.get(side, ())) for side in ("server", "client"))
    return f"{model}: server on CPU {server}, load generator on CPU {client}."


def _numbers(cpus: Sequence[int]) -> str:
    return ", ".join(map(str, cpus)) or "unknown"


def _rounds(records: Sequence[Record]) -> int:
    return max((len(record.rounds) for record in records), default=0)


def _schedule(run: RunFile, records: Sequence[Record]) -> str:
    """With a precision asked for, the rounds that it took: the fewest of any comparison, and the most."""
    plan = run.schedule
    rounds, most = plan.get("rounds", 0), _rounds(records) if run.stopped else 0
    taken = f"{rounds} to {count(most, 'round')}" if 0 < rounds < most else count(rounds, "round")
    return (
        f"{taken} (fresh starts) of {count(plan.get('slices', 0), 'slice')} of "
        f"{plan.get('slice_s', 0):g} s, the cells' slices interleaved in random order, seed {run.seed}; "
        "intervals by hierarchical bootstrap."
    )
