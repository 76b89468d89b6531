"""The table of verdicts: each rule with what it looks at, what it says, what it does to the figure, and its cure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Literal, Protocol

from loadgen.contract import KernelLimits, LoadResult
from orchestrator.engines.protocol import Limits, Placement, Side, cpus_named
from orchestrator.probes.results import Round, Slice

Effect = Literal["void", "unranked", "bound", "mark"]
"""void: no figure is printed. unranked: printed, outside the order. bound: printed as a lower bound. mark: marked."""

CLIENT_BUDGET = 0.85
FOREIGN_SHARE = 0.15
STEAL_SHARE = 0.05
THROTTLED_SHARE = 0.01
LITTLE_TOLERANCE = 0.15
CHANCE = 0.001
IN_TIME = 0.97
UNSTABLE_SPREAD = 0.20
ERRORS_VOID = 0.01


class Point(Protocol):
    """Of a cell what the rules look at: a cell of the matrix has it, and so has its record."""

    @property
    def workers(self) -> int: ...

    @property
    def connections(self) -> int: ...

    @property
    def open(self) -> int: ...


@dataclass(frozen=True)
class Facts:
    """What the rules may look at: one cell after its rounds. `limits`: those that the engine asked for."""

    cell: Point
    rounds: Sequence[Round]
    placement: Placement
    emulated: bool
    spread: float | None
    limits: Mapping[Side, Limits] = field(default_factory=dict)

    def slices(self) -> Iterator[Slice]:
        for round_ in self.rounds:
            yield from round_.slices


@dataclass(frozen=True)
class Verdict:
    """A rule that fired. `slices` of `of` slices showed it (0 of 0 for what concerns the whole cell)."""

    rule: str
    effect: Effect
    text: str
    cure: str
    slices: int = 0
    of: int = 0


@dataclass(frozen=True)
class SliceRule:
    """Fires where more than `share` of the slices show it; `find` tells what it saw in one, or "" ."""

    name: str
    effect: Effect
    share: float
    cure: str
    find: Callable[[Facts, LoadResult], str]


@dataclass(frozen=True)
class CellRule:
    """`find` looks at the whole cell and tells what it saw, or ""."""

    name: str
    effect: Effect
    cure: str
    find: Callable[[Facts], str]


def judge(facts: Facts) -> tuple[Verdict, ...]:
    """Every verdict on a cell, the gravest first; none means ok."""
    found = [*_slice_verdicts(facts), *_cell_verdicts(facts)]
    gravity: dict[str, int] = {"void": 0, "unranked": 1, "bound": 2, "mark": 3}
    return tuple(sorted(found, key=lambda verdict: gravity[verdict.effect]))


def _slice_verdicts(facts: Facts) -> Iterator[Verdict]:
    loads = [slice_.load for slice_ in facts.slices()]
    for rule in SLICE_RULES:
        texts = [text for load in loads if (text := rule.find(facts, load))]
        if texts and len(texts) > rule.share * len(loads):
            yield Verdict(rule.name, rule.effect, texts[0], rule.cure, len(texts), len(loads))


def _cell_verdicts(facts: Facts) -> Iterator[Verdict]:
    for rule in CELL_RULES:
        if text := rule.find(facts):
            yield Verdict(rule.name, rule.effect, text, rule.cure)


def _error_share(load: LoadResult) -> float:
    errors = sum(count for kind, count in load.errors.items() if kind != "wrong_body")
    return float(errors / max(1, errors + load.requests))


def _errors_named(load: LoadResult) -> str:
    named = ", ".join(f"{count} {kind}" for kind, count in load.errors.items() if count and kind != "wrong_body")
    return f"{named} beside {load.requests} right answers" if named else "no answer at all"


def _many_errors(_: Facts, load: LoadResult) -> str:
    return _errors_named(load) if _error_share(load) > ERRORS_VOID or not load.requests else ""


def _few_errors(_: Facts, load: LoadResult) -> str:
    return _errors_named(load) if 0 < _error_share(load) <= ERRORS_VOID else ""


def _wrong_body(_: Facts, load: LoadResult) -> str:
    wrong = load.errors.get("wrong_body", 0)
    return f"{wrong} answers had another body than the one checked before" if wrong else ""


def _client_used(load: LoadResult) -> str:
    share = load.client.share
    return f"the load generator used {share:.0%} of its CPU" if share > CLIENT_BUDGET else ""


def _client_bound(facts: Facts, load: LoadResult) -> str:
    return "" if facts.cell.open else _client_used(load)


def _client_busy(facts: Facts, load: LoadResult) -> str:
    """In an open loop the throughput is what was asked for, so a busy load generator spoils the latencies."""
    used = _client_used(load) if facts.cell.open else ""
    return f"{used}, so answers waited for it" if used else ""


def _client_late(_: Facts, load: LoadResult) -> str:
    """As the load generator itself judges (loadgen/openloop.py)."""
    late = load.late
    if not load.client_late or not late:
        return ""
    bound, worst = late.bound_us / 1000, late.max_us / 1000
    return f"{late.requests} of {load.due} requests went out over {bound:g} ms late, one {worst:.1f} ms"


def _host_saturated(facts: Facts, load: LoadResult) -> str:
    host, server = load.host, load.server
    if not host or not server or not load.elapsed_s:
        return ""
    cpus = facts.placement.server
    busy = sum(host[f"cpu{cpu}"].busy for cpu in cpus if f"cpu{cpu}" in host)
    foreign = (busy - server.cpu_s / load.elapsed_s) / len(cpus)
    steal = max(cpu.steal for cpu in host.values())
    if steal > STEAL_SHARE:
        return f"the hypervisor took {steal:.0%} of a CPU"
    unknown = ", or children that the server does not wait for," if server.unwaiting else ""
    return f"other processes{unknown} used {foreign:.0%} of the server's CPUs" if foreign > FOREIGN_SHARE else ""


_SIDES: Mapping[Side, str] = {"server": "server", "client": "load generator"}


def _not_pinned(facts: Facts, load: LoadResult) -> str:
    """The kernel lets a side run elsewhere than on its own CPUs: the engine did not pin it, or it pinned itself."""
    for side, asked, allowed in _pinned(facts, load):
        if beyond := allowed - asked:
            others = set(getattr(facts.placement, "client" if side == "server" else "server"))
            also = f", the {_SIDES['client' if side == 'server' else 'server']}'s too" if beyond & others else ""
            return f"the {_SIDES[side]} may run on {cpus_named(allowed)}{also}; asked for: {cpus_named(asked)}"
    return ""


def _pinned_closer(facts: Facts, load: LoadResult) -> str:
    for side, asked, allowed in _pinned(facts, load):
        if allowed < asked:
            return f"the {_SIDES[side]} may run on {cpus_named(allowed)} only; asked for: {cpus_named(asked)}"
    return ""


def _pinned(facts: Facts, load: LoadResult) -> Iterator[tuple[Side, set[int], set[int]]]:
    """Each side with the CPUs that it was to have, and those that the kernel allows, where that is known."""
    placed: dict[Side, Sequence[int]] = {"server": facts.placement.server, "client": facts.placement.client}
    for side, asked in placed.items():
        seen = load.client if side == "client" else load.server
        if seen and seen.cpus:
            yield side, set(asked), set(seen.cpus)


def _not_limited(facts: Facts, load: LoadResult) -> str:
    """A limit of the control group is another than was asked for, where it can be read."""
    for side, limits in facts.limits.items():
        seen = load.client if side == "client" else load.server
        if missed := limits.missed(seen.limits if seen else KernelLimits()):
            return f"the {_SIDES[side]} may have {missed}"
    return ""


def _restarted(_: Facts, load: LoadResult) -> str:
    """Records of before births were counted have ends only."""
    server = load.server
    if not server:
        return ""
    born, ended, ended_s = server.born or 0, server.ended, server.ended_s or 0.0
    if not (born or ended or ended_s):
        return ""
    seen = f"{ended} of its processes ended and {born} began" if born or ended else "processes began and ended unseen"
    return f"{seen} in {load.elapsed_s:.2f} s" + (f"; ended ones used {ended_s:.2f} s of CPU" if ended_s else "")


def _throttled(facts: Facts, load: LoadResult) -> str:
    """Records of before the load generator read the counters have none."""
    held = load.throttled
    if held is None:
        return ""
    for quota, whom in ((held.server, "server"), (held.client, "load generator")):
        seconds = quota.seconds if quota else 0.0
        if seconds > THROTTLED_SHARE * load.elapsed_s:
            return f"a CPU quota stopped the {whom} for {seconds:.2f} s of {load.elapsed_s:.2f} s"
    cpus = {f"cpu{cpu}" for cpu in (*facts.placement.server, *facts.placement.client)}
    slowed = sum(count for cpu, count in (held.heat or {}).items() if cpu in cpus)
    return f"its CPUs slowed down {slowed} times, being too hot" if slowed else ""


def _littles_law(facts: Facts, load: LoadResult) -> str:
    """Little's law: the mean number of requests under way is throughput times mean latency (Little, 1961).

    In an open loop that number is what it comes to, not that of the connections.
    """
    if facts.cell.open:
        return ""
    mean_us, expected = load.latency.mean, facts.cell.connections
    if mean_us is None:
        return ""
    under_way = load.rps * mean_us / 1e6
    if load.requests < 20 * expected or abs(under_way / expected - 1) <= LITTLE_TOLERANCE:
        return ""
    return f"throughput × mean latency is {under_way:.1f}, and {expected} connections were open"


def _starved(facts: Facts, load: LoadResult) -> str:
    """Connections without an answer: more than chance leaves out, or most of them in a slice that is too short.

    Records of before the load generator counted them have none.
    """
    unanswered, connections = load.unanswered, facts.cell.connections
    mean, elapsed = (load.latency.mean or 0.0) / 1e6, load.elapsed_s
    none = min(unanswered.connections, connections) if unanswered else 0
    if not none or not load.requests or not mean:
        return ""
    seen = f"{none} of {connections} connections had no answer in {elapsed:.2f} s"
    if _left_out(none, connections * exp(-elapsed / mean)) < CHANCE:
        return f"{seen}, and the others had one every {mean * 1000:.3g} ms"
    return f"{seen}: it is too short for so slow a server" if none > connections / 2 else ""


def _left_out(least: int, expected: float) -> float:
    """The probability that chance leaves out so many connections where it leaves out `expected` on average.

    A server that takes connections in random order leaves one without any of n turns with probability exp(-n), so the
    number of those that it leaves out is Poisson-distributed.
    """
    fewer, term = 0.0, exp(-expected)
    for count in range(least):
        fewer += term
        term *= expected / (count + 1)
    return 1 - fewer


def _undeclared(facts: Facts) -> str:
    checks = [round_.check for round_ in facts.rounds if round_.check]
    found = {mismatch for check in checks for mismatch in check.mismatches}
    return "; ".join(f"{m.field} is {m.found}, declared {m.declared}" for m in sorted(found, key=lambda m: m.field))


def _unverified(facts: Facts) -> str:
    checks = [round_.check for round_ in facts.rounds if round_.check]
    names = dict.fromkeys(name for check in checks for name in check.unverified)
    return f"declared, and not to be found out: {', '.join(names)}" if names else ""


def _oversubscribed(facts: Facts) -> str:
    workers, cpus = facts.cell.workers, len(facts.placement.server)
    return f"{workers} workers on {cpus} CPU{'s' * (cpus > 1)}" if workers > cpus else ""


def _mixed(facts: Facts) -> str:
    failed = [round_ for round_ in facts.rounds if round_.failure]
    if not failed or len(failed) == len(facts.rounds):
        return ""
    reason = failed[0].failure.reason if failed[0].failure else ""
    return f"{len(failed)} of {len(facts.rounds)} rounds failed: {reason}"


def _overloaded(facts: Facts) -> str:
    loads = [slice_.load for slice_ in facts.slices()] if facts.cell.open else []
    due, in_time = sum(load.due for load in loads), sum(load.in_time for load in loads)
    return f"{in_time} of {due} requests that were due had an answer in their slice" if in_time < IN_TIME * due else ""


def _unstable(facts: Facts) -> str:
    if facts.spread is None or facts.spread <= UNSTABLE_SPREAD:
        return ""
    return f"the rounds' medians spread by {facts.spread:.0%}"


SLICE_RULES = (
    SliceRule("wrong_body", "void", 0.0, "find out what the server sends: `matrix run --only CELL`", _wrong_body),
    SliceRule("errors", "void", 0.0, "see first_error in the record; lower the connections", _many_errors),
    SliceRule("errors", "mark", 0.0, "see first_error in the record", _few_errors),
    SliceRule(
        "client_bound", "bound", 0.5, "give the load generator more CPUs, or compare CPU per request", _client_bound
    ),
    SliceRule(
        "client_bound", "unranked", 0.5, "give the load generator more CPUs, or measure at a lower `open`", _client_busy
    ),
    SliceRule(
        "client_late", "unranked", 0.34, "stop what else runs here, or give the load generator more CPUs", _client_late
    ),
    SliceRule(
        "host_saturated", "unranked", 0.34, "stop what else runs here; `matrix doctor` names it", _host_saturated
    ),
    SliceRule(
        "not_pinned", "unranked", 0.0,
        "measure where the engine can pin (`matrix doctor`), or take the server's own option for CPUs away",
        _not_pinned,
    ),
    SliceRule(
        "not_pinned", "mark", 0.0,
        "name these CPUs under `cpus`, or take the server's own option for CPUs away", _pinned_closer,
    ),
    SliceRule(
        "not_limited", "unranked", 0.0,
        "measure where the engine can limit (`matrix doctor`): on control groups with its memory, swap and pids",
        _not_limited,
    ),
    SliceRule("throttled", "unranked", 0.34, "lift the CPU quota of what runs here, or cool the machine", _throttled),
    SliceRule(
        "starved", "unranked", 0.34, "give it a thread for each connection, or fewer connections, or longer slices",
        _starved,
    ),
    SliceRule(
        "workers_restarted", "mark", 0.0,
        "lift the limit of requests per worker, or measure long slices; without such a limit, read why workers end",
        _restarted,
    ),
    SliceRule(
        "littles_law", "mark", 0.5, "connections waited outside the measured time; distrust latency", _littles_law
    ),
)  # fmt: skip

CELL_RULES = (
    CellRule("undeclared_config", "unranked", "fix the entry's options or what it declares", _undeclared),
    CellRule("mixed", "unranked", "read the failed round's log in the record", _mixed),
    CellRule(
        "overloaded", "unranked", "measure at a lower `open`; where single requests are slow, in longer slices",
        _overloaded,
    ),
    CellRule(
        "emulated", "unranked", "use an image of this machine's own architecture",
        lambda facts: "the image is of another architecture than the machine" if facts.emulated else "",
    ),
    CellRule(
        "shared_cpus", "unranked", "measure on a machine with two CPUs or more",
        lambda facts: "server and load generator had one CPU between them" if facts.placement.shared else "",
    ),
    CellRule("unverified", "mark", "trust its entry, or declare no more than can be seen", _unverified),
    CellRule("oversubscribed", "mark", "use at most as many workers as the server has CPUs", _oversubscribed),
    CellRule("unstable", "mark", "measure longer, or on a quieter machine", _unstable),
)  # fmt: skip
