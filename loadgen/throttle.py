"""What held CPUs back: quotas of control groups, and heat. None where it cannot be read, as outside Linux."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from loadgen.cgroup import ROOT, Interface, files, read_text
from loadgen.contract import Quota, Throttled

STAT = Interface("cpu", "cpu.stat", "cpu.stat")
_TO_NS = {"throttled_usec": 1000, "throttled_time": 1}
_HEAT = ("core_throttle_count", "package_throttle_count")


@dataclass(frozen=True)
class Spent:
    """Of a process's control group and those above it: how often a quota was used up, and for how long it stopped."""

    periods: int
    ns: int


@dataclass(frozen=True)
class Throttle:
    """One reading, since boot. `heat`: how often each CPU (`cpu0` …), or its package, slowed down for being too hot."""

    client: Spent | None
    server: Spent | None
    heat: dict[str, int] | None


@dataclass(frozen=True)
class Counters:
    """The files to read; finding them takes longer than reading them."""

    client: tuple[Path, ...]
    server: tuple[Path, ...]
    heat: tuple[Path, ...]


def counters(server: int | None, root: Path = ROOT) -> Counters:
    """Those of this process, of `server` and of the machine. About half a millisecond."""
    heat = (path for name in _HEAT for path in root.glob(f"sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/{name}"))
    of_server = () if server is None else files(str(server), STAT, root)
    return Counters(files("self", STAT, root), of_server, tuple(heat))


def read(found: Counters) -> Throttle:
    """Read all. About 15 µs a file."""
    return Throttle(_quota(found.client), _quota(found.server), _heat(found.heat))


def between(before: Throttle, after: Throttle) -> Throttled:
    """What was held back from one reading to another."""
    heated = None
    if before.heat is not None and after.heat is not None:
        heated = {cpu: count - before.heat[cpu] for cpu, count in after.heat.items() if cpu in before.heat}
    return Throttled(
        client=_grown(before.client, after.client), server=_grown(before.server, after.server), heat=heated
    )


def _grown(before: Spent | None, after: Spent | None) -> Quota | None:
    if before is None or after is None:
        return None
    return Quota(periods=after.periods - before.periods, seconds=(after.ns - before.ns) / 1e9)


def _quota(files: tuple[Path, ...]) -> Spent | None:
    """Added up over all groups, whichever has the quota."""
    counts = [count for path in files if (count := _counts(read_text(path)))]
    return Spent(sum(count.periods for count in counts), sum(count.ns for count in counts)) if counts else None


def _counts(text: str) -> Spent | None:
    """The counters of a cpu.stat file of either version; version 2 has none where nothing can be limited."""
    lines = (line.partition(" ") for line in text.splitlines())
    fields = {name: int(value) for name, _, value in lines if value.isdigit()}
    spent = [value * _TO_NS[name] for name, value in fields.items() if name in _TO_NS]
    return Spent(fields["nr_throttled"], spent[0]) if spent and "nr_throttled" in fields else None


def _heat(files: tuple[Path, ...]) -> dict[str, int] | None:
    """Core and package of each CPU added up. Only x86 has such counters, and a virtual machine mostly none."""
    found: dict[str, int] = {}
    for path in files:
        text, cpu = read_text(path).strip(), path.parts[-3]
        if text.isdigit():
            found[cpu] = found.get(cpu, 0) + int(text)
    return found or None
