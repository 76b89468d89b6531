"""What /proc says of a tree of processes and of the machine. Everything is None where there is no /proc."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from loadgen.spec import Json

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """One process up to now. `cpu_ns` covers ended threads too; the ticks cover reaped children too."""

    pid: int
    cpu_ns: int
    user_s: float
    system_s: float
    children_s: float
    threads: int
    voluntary: int
    involuntary: int


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
    """The process and its living descendants; empty where there is no such process."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir() if available() else ():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) and fields[0] != "Z":
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


def usage(pids: tuple[int, ...]) -> dict[int, Usage]:
    """The usage of each process that still lives. About 0.1 ms a process."""
    readings = (_usage(pid) for pid in pids)
    return {reading.pid: reading for reading in readings if reading is not None}


def _usage(pid: int) -> Usage | None:
    cpu_ns, fields = _cpu_ns(pid), _stat(pid)
    if cpu_ns is None or not fields:
        return None
    user, system, child_user, child_system = (int(value) / TICKS for value in fields[11:15])
    if not (tasks := _tasks(pid)):
        return None
    statuses = [_read(task / "status") for task in tasks]
    return Usage(
        pid=pid,
        cpu_ns=cpu_ns,
        user_s=user,
        system_s=system,
        children_s=child_user + child_system,
        threads=len(tasks),
        voluntary=sum(_status(text, "voluntary_ctxt_switches") for text in statuses),
        involuntary=sum(_status(text, "nonvoluntary_ctxt_switches") for text in statuses),
    )


def _status(text: str, name: str) -> int:
    """A number of a /proc status file, as it stands there (sizes in KiB); 0 where it is missing."""
    _, found, rest = ("\n" + text).partition(f"\n{name}:")
    return int(rest.split()[0]) if found else 0


def memory(pids: tuple[int, ...]) -> Memory:
    """The memory of the processes together."""
    statuses = [_read(PROC / str(pid) / "status") for pid in pids]
    rollups = [_read(PROC / str(pid) / "smaps_rollup") for pid in pids]
    return Memory(
        rss=1024 * sum(_status(text, "VmRSS") for text in statuses),
        pss=1024 * sum(_status(text, "Pss") for text in rollups) if pids and all(rollups) else None,
        peak_rss=1024 * sum(_status(text, "VmHWM") for text in statuses),
    )


def between(before: dict[int, Usage], after: dict[int, Usage], now: Memory) -> Json | None:
    """What a tree used from one reading to another; None where it could not be read.

    A process that appeared counts from nothing. One that ended is missed by the CPU clocks; then
    `cpu_s` comes from the ticks (10 ms), in which a parent has the time of the children it reaped.
    """
    if not after:
        return None
    ended = before.keys() - after.keys()
    user = _grown(before, after, "user_s")
    system = _grown(before, after, "system_s")
    cpu_s = _grown(before, after, "cpu_ns") / 1e9
    if ended:
        lost = sum(before[pid].user_s + before[pid].system_s + before[pid].children_s for pid in ended)
        cpu_s = max(0.0, user + system + _grown(before, after, "children_s") - lost)
    return {
        "cpu_s": cpu_s,
        "user_s": user,
        "system_s": system,
        "rss_bytes": now.rss,
        "pss_bytes": now.pss,
        "peak_rss_bytes": now.peak_rss,
        "processes": len(after),
        "ended": len(ended),
        "threads": sum(usage.threads for usage in after.values()),
        "voluntary_switches": int(_grown(before, after, "voluntary")),
        "involuntary_switches": int(_grown(before, after, "involuntary")),
    }


def _grown(before: dict[int, Usage], after: dict[int, Usage], field: str) -> float:
    return sum(
        float(getattr(usage, field) - (getattr(before[pid], field) if pid in before else 0))
        for pid, usage in after.items()
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


def shares(before: dict[str, tuple[int, int, int]], after: dict[str, tuple[int, int, int]]) -> Json | None:
    """Busy and steal share of each CPU between two readings of `cpu_ticks`; None without any."""
    spans = {name: [b - a for a, b in zip(before[name], after[name], strict=True)] for name in before if name in after}
    if not spans:
        return None
    return {
        name: {"busy": busy / total, "steal": steal / total}
        for name, (busy, steal, total) in spans.items()
        if total > 0
    }
