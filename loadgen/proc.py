"""What /proc says of a tree of processes and of the machine. Everything is None where there is no /proc."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from loadgen.contract import CpuShares, ServerUse

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
ENDED = ("Z", "X")
"""States of a process that ended: it waits for its parent, or is just being removed."""


@dataclass(frozen=True)
class Usage:
    """One process up to now. `cpu_ns` covers ended threads too; `reaped_…` are of children it waited for, and theirs.

    `started`, in ticks since boot, tells it from another process that has the same number later. `living` is False
    for one that ended and was not waited for yet. `allowed`: the CPUs of its threads, as the kernel lists them.
    `unwaiting`: it ignores SIGCHLD, so that nobody gets the CPU time of its children when they end.
    """

    pid: int
    started: int
    living: bool
    cpu_ns: int
    user_s: float
    system_s: float
    reaped_user_s: float
    reaped_system_s: float
    threads: int
    voluntary: int
    involuntary: int
    allowed: frozenset[str]
    unwaiting: bool

    @property
    def life_s(self) -> float:
        """What its parent's `reaped_…` grow by when it is waited for, were it to end now."""
        return self.cpu_ns / 1e9 + self.reaped_user_s + self.reaped_system_s


Reading = dict[tuple[int, int], Usage]
"""The processes of a tree by their numbers and starts."""


@dataclass(frozen=True)
class Memory:
    """Bytes of a tree. `pss` shares common pages out, None where smaps may not be read."""

    rss: int
    pss: int | None
    peak_rss: int


def available() -> bool:
    """Whether this system has a Linux /proc."""
    return (PROC / "self" / "stat").exists()


def tree(pid: int) -> tuple[int, ...]:
    """The process and its descendants, those not yet waited for among them; empty where there is no such process."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir() if available() else ():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = [pid] if _stat(pid) else []
    for parent in found:
        found.extend(children.get(parent, ()))
    return tuple(found)


def wanting(pids: tuple[int, ...]) -> int:
    """Threads of the processes that run, wait for a CPU, or wait for a disk: none where all is at rest."""
    stats = [_read(task / "stat") for pid in pids for task in _tasks(pid)]
    return sum(text.rpartition(")")[2].split()[:1] in (["R"], ["D"]) for text in stats)


def group(pid: int) -> tuple[int, ...]:
    """All members of the process's group, itself among them."""
    stats = {int(entry.name): _stat(int(entry.name)) for entry in PROC.iterdir() if entry.name.isdigit()}
    own = stats.get(pid) or ["", "", ""]
    return tuple(member for member, fields in stats.items() if fields and fields[2] == own[2])


def unread(port: int, peer: int) -> int | None:
    """Bytes that wait to be read at the end `port` of a TCP connection in this network namespace; see proc_net(5)."""
    for line in (_read(PROC / "net" / "tcp") + _read(PROC / "net" / "tcp6")).splitlines():
        fields = line.split()
        if fields[1].endswith(f":{port:04X}") and fields[2].endswith(f":{peer:04X}"):
            return int(fields[4].partition(":")[2], 16)
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # the process ended, or it belongs to somebody else
        return ""


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the third on (state, ppid, …), see proc(5)."""
    return _read(PROC / str(pid) / "stat").rpartition(")")[2].split()


def _cpu_ns(pid: int) -> int | None:
    """A process's CPU time from its CPU-time clock, clock_getcpuclockid(3): ns, ended threads included.

    /proc/<pid>/schedstat is of the main thread only, and task/*/schedstat forgets threads that ended.
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return None


def _tasks(pid: int) -> list[Path]:
    """The folders of its threads; none where it ended."""
    try:
        return list((PROC / str(pid) / "task").iterdir())
    except OSError:
        return []


def usage(pids: tuple[int, ...]) -> Reading:
    """The usage of each process that is still there. About 0.1 ms a process.

    Parents stand before their children, and all are read again where one was waited for meanwhile: its life would be
    neither its own any more nor its parent's yet.
    """
    found = [reading for pid in pids if (reading := _usage(pid))]
    if len(found) < len(pids):
        return usage(tuple(reading.pid for reading in found))
    return {(reading.pid, reading.started): reading for reading in found}


def _usage(pid: int) -> Usage | None:
    cpu_ns, fields = _cpu_ns(pid), _stat(pid)
    if cpu_ns is None or not fields:
        return None
    user, system, reaped_user, reaped_system = (int(value) / TICKS for value in fields[11:15])
    if not (tasks := _tasks(pid)):
        return None
    statuses = [_read(task / "status") for task in tasks]
    living = fields[0] not in ENDED or len(tasks) > 1  # a first thread may end before the others
    return Usage(
        pid=pid,
        started=int(fields[19]),
        living=living,
        cpu_ns=cpu_ns,
        user_s=user,
        system_s=system,
        reaped_user_s=reaped_user,
        reaped_system_s=reaped_system,
        threads=len(tasks) if living else 0,
        voluntary=sum(_status(text, "voluntary_ctxt_switches") for text in statuses),
        involuntary=sum(_status(text, "nonvoluntary_ctxt_switches") for text in statuses),
        allowed=frozenset(_allowed(text) for text in statuses) - {""} if living else frozenset(),
        unwaiting=_ignores_children(statuses[0]),
    )


def _ignores_children(text: str) -> bool:
    """Whether SIGCHLD is in the mask `SigIgn` of a status file; see proc_pid_status(5) and waitpid(2)."""
    mask = text.partition("\nSigIgn:")[2].partition("\n")[0].strip()
    return bool(mask) and bool(int(mask, 16) >> (signal.SIGCHLD - 1) & 1)


def _allowed(text: str) -> str:
    """The CPUs of a thread's status file as the kernel lists them, like `0,2-3`; "" where it does not."""
    return text.partition("\nCpus_allowed_list:")[2].partition("\n")[0].strip()


def _status(text: str, name: str) -> int:
    """A number of a /proc status file, as it stands there (sizes in KiB); 0 where it is missing."""
    _, found, rest = ("\n" + text).partition(f"\n{name}:")
    return int(rest.split()[0]) if found else 0


def memory(reading: Reading) -> Memory:
    """The memory of the processes together, now."""
    pids = tuple(usage.pid for usage in reading.values() if usage.living)
    statuses = [_read(PROC / str(pid) / "status") for pid in pids]
    rollups = [_read(PROC / str(pid) / "smaps_rollup") for pid in pids]
    return Memory(
        rss=1024 * sum(_status(text, "VmRSS") for text in statuses),
        pss=1024 * sum(_status(text, "Pss") for text in rollups) if pids and all(rollups) else None,
        peak_rss=1024 * sum(_status(text, "VmHWM") for text in statuses),
    )


def between(before: Reading, after: Reading, now: Memory) -> ServerUse | None:
    """What a tree used from one reading to another; None where it could not be read.

    `cpu_s` is the sum of

    - what the clocks of the processes there at the end advanced; one that appeared meanwhile counts from nothing;
    - what `reaped_…` of those grew by: the kernel adds a child's whole life, and that of the children it had waited
      for itself, to the parent that waits for it. So a process that was born and ended between the readings counts
      there, and one whose parent ended, too: once each, whoever waited;
    - less the life up to the first reading of those that were there then and are no more.

    The last two are ticks and come to nothing where no process ended. What never comes to a process of the tree is not
    seen: children whose parent ignores SIGCHLD (`unwaiting`), or that init or another process outside the tree waited
    for. Where that leaves less than nothing to those that ended (`ended_s`), they count as nothing.
    """
    lives, lived = _living(after), _living(before)
    if not lives:
        return None
    born = after.keys() - before.keys()
    gone = [usage for key, usage in before.items() if key not in after]
    user, reaped_user = _grown(before, after, "user_s"), _grown(before, after, "reaped_user_s")
    system, reaped_system = _grown(before, after, "system_s"), _grown(before, after, "reaped_system_s")
    ended_s = max(0.0, reaped_user + reaped_system - sum(usage.life_s for usage in gone))
    return ServerUse(
        cpu_s=_grown(before, after, "cpu_ns") / 1e9 + ended_s,
        user_s=user + max(0.0, reaped_user - sum(usage.user_s + usage.reaped_user_s for usage in gone)),
        system_s=system + max(0.0, reaped_system - sum(usage.system_s + usage.reaped_system_s for usage in gone)),
        rss_bytes=now.rss,
        pss_bytes=now.pss,
        peak_rss_bytes=now.peak_rss,
        processes=len(lives),
        born=len(born),
        ended=len((lived | born) - lives),
        ended_s=ended_s,
        unwaiting=sum(after[key].unwaiting for key in lives),
        threads=sum(usage.threads for usage in after.values()),
        voluntary_switches=int(_grown(before, after, "voluntary")),
        involuntary_switches=int(_grown(before, after, "involuntary")),
        cpus=_cpus((*before.values(), *after.values())),
    )


def _living(reading: Reading) -> set[tuple[int, int]]:
    return {key for key, usage in reading.items() if usage.living}


def _cpus(usages: Iterable[Usage]) -> tuple[int, ...] | None:
    """The CPUs that any thread may run on; None where the kernel does not tell."""
    found = {cpu for text in frozenset[str]().union(*(usage.allowed for usage in usages)) for cpu in listed(text)}
    return tuple(sorted(found)) or None


def listed(text: str) -> Iterator[int]:
    """`0,4-5` -> 0 4 5, the kernel's form of a list of CPUs; see cpuset(7)."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _grown(before: Reading, after: Reading, field: str) -> float:
    return sum(
        float(getattr(usage, field) - (getattr(before[key], field) if key in before else 0))
        for key, usage in after.items()
    )


def kernel_counts() -> tuple[int, int] | None:
    """(passive opens, retransmitted segments) of this network namespace since it began."""
    lines = [line.split() for line in _read(PROC / "net" / "snmp").splitlines() if line.startswith("Tcp:")]
    if len(lines) != 2:
        return None
    counts = dict(zip(*lines, strict=True))
    return int(counts["PassiveOpens"]), int(counts["RetransSegs"])


def cpu_ticks() -> dict[str, tuple[int, int, int]]:
    """Per CPU (`cpu0` …): ticks (busy, steal, all) since boot; busy is all but idle, iowait and steal."""
    ticks = {}
    for line in _read(PROC / "stat").splitlines():
        name, *numbers = line.split()
        if name.startswith("cpu") and name != "cpu":
            counts = [int(number) for number in numbers[:8]]
            total, steal = sum(counts), counts[7]
            ticks[name] = (total - counts[3] - counts[4] - steal, steal, total)
    return ticks


def shares(
    before: dict[str, tuple[int, int, int]], after: dict[str, tuple[int, int, int]]
) -> dict[str, CpuShares] | None:
    """Busy and steal share of each CPU between two readings of `cpu_ticks`; None without any."""
    spans = {name: [b - a for a, b in zip(before[name], after[name], strict=True)] for name in before if name in after}
    if not spans:
        return None
    return {
        name: CpuShares(busy=max(0, busy) / total, steal=max(0, steal) / total)
        for name, (busy, steal, total) in spans.items()
        if total > 0
    }
