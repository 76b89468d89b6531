"""Everything that is read at both ends of a timed stretch, and the differences."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from time import perf_counter_ns

from msgspec.structs import replace

from loadgen import affinity, limits, proc, throttle
from loadgen.contract import ClientUse, KernelCounts, ServerUse


@dataclass(frozen=True)
class Watched:
    """What to read: the processes of the server's tree, and the counters of throttling."""

    server: tuple[int, ...]
    counters: throttle.Counters


@dataclass(frozen=True)
class Snapshot:
    """One reading; `at` is perf_counter_ns, `allowed` the CPUs that the generator may run on (none: not told)."""

    at: int
    user_s: float
    system_s: float
    involuntary: int
    allowed: list[int]
    kernel: tuple[int, int] | None
    cpus: dict[str, tuple[int, int, int]]
    server: proc.Reading
    throttled: throttle.Throttle


def watch(pid: int | None) -> Watched:
    """The tree of `pid`, as it is now. It takes milliseconds: not to be done while something is timed."""
    return Watched(() if pid is None else proc.tree(pid), throttle.counters(pid))


def snapshot(watched: Watched) -> Snapshot:
    """Read everything; the processes of the server's tree first."""
    usage = proc.usage(watched.server)
    throttled = throttle.read(watched.counters)
    own = resource.getrusage(resource.RUSAGE_SELF)
    return Snapshot(
        at=perf_counter_ns(),
        user_s=own.ru_utime,
        system_s=own.ru_stime,
        involuntary=own.ru_nivcsw,
        allowed=affinity.allowed(),
        kernel=proc.kernel_counts(),
        cpus=proc.cpu_ticks(),
        server=usage,
        throttled=throttled,
    )


def client_use(before: Snapshot, after: Snapshot) -> ClientUse:
    """The generator's own CPU, and what bounds it; `share` is CPU over wall time."""
    user, system = after.user_s - before.user_s, after.system_s - before.system_s
    return bounded_use(after, user, system, after.at - before.at, after.involuntary - before.involuntary)


def bounded_use(now: Snapshot, user_s: float, system_s: float, elapsed_ns: int, involuntary: int) -> ClientUse:
    """CPU of a generator that is bounded as this process is at that reading."""
    return ClientUse(
        user_s=user_s,
        system_s=system_s,
        share=(user_s + system_s) / max(elapsed_ns / 1e9, 1e-9),
        involuntary_switches=involuntary,
        cpus=tuple(now.allowed) or None,
        limits=limits.read("self"),
    )


def server_use(pid: int | None, before: Snapshot, after: Snapshot, memory: proc.Memory) -> ServerUse | None:
    """What the tree of `pid` used, and what bounds it; None where it could not be read."""
    used = proc.between(before.server, after.server, memory)
    return None if used is None else replace(used, limits=limits.read(str(pid)))


def kernel_use(before: Snapshot, after: Snapshot) -> KernelCounts | None:
    """What the network namespace counted; None where there is no /proc/net/snmp."""
    if before.kernel is None or after.kernel is None:
        return None
    return KernelCounts(
        passive_opens=after.kernel[0] - before.kernel[0], retransmits=after.kernel[1] - before.kernel[1]
    )
