"""What held CPUs back: quotas of control groups, and heat. None where it cannot be read, as outside Linux."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadgen.spec import Json

ROOT = Path("/")
_TO_NS = {"throttled_usec": 1000, "throttled_time": 1}
_HEAT = ("core_throttle_count", "package_throttle_count")


@dataclass(frozen=True)
class Quota:
    """Of a process's control group and those above it: how often a quota was used up, and for how long it stopped."""

    periods: int
    ns: int


@dataclass(frozen=True)
class Throttle:
    """One reading, since boot. `heat`: how often each CPU (`cpu0` …), or its package, slowed down for being too hot."""

    client: Quota | None
    server: Quota | None
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
    return Counters(_stat_files("self", root), () if server is None else _stat_files(str(server), root), tuple(heat))


def read(found: Counters) -> Throttle:
    """Read all. About 15 µs a file."""
    return Throttle(_quota(found.client), _quota(found.server), _heat(found.heat))


def between(before: Throttle, after: Throttle) -> Json:
    """What was held back from one reading to another."""
    heated = None
    if before.heat is not None and after.heat is not None:
        heated = {cpu: count - before.heat[cpu] for cpu, count in after.heat.items() if cpu in before.heat}
    return {
        "client": _grown(before.client, after.client),
        "server": _grown(before.server, after.server),
        "heat": heated,
    }


def _grown(before: Quota | None, after: Quota | None) -> Json | None:
    if before is None or after is None:
        return None
    return {"periods": after.periods - before.periods, "seconds": (after.ns - before.ns) / 1e9}


def _quota(files: tuple[Path, ...]) -> Quota | None:
    """Added up over all groups, whichever has the quota."""
    counts = [count for path in files if (count := _counts(_read(path)))]
    return Quota(sum(count.periods for count in counts), sum(count.ns for count in counts)) if counts else None


def _counts(text: str) -> Quota | None:
    """The counters of a cpu.stat file of either version; version 2 has none where nothing can be limited."""
    lines = (line.partition(" ") for line in text.splitlines())
    fields = {name: int(value) for name, _, value in lines if value.isdigit()}
    spent = [value * _TO_NS[name] for name, value in fields.items() if name in _TO_NS]
    return Quota(fields["nr_throttled"], spent[0]) if spent and "nr_throttled" in fields else None


def _stat_files(pid: str, root: Path) -> tuple[Path, ...]:
    """cpu.stat of the process's control group and of those above it.

    A container sees its own group only, so they are looked for as the process itself sees them, then as we do.
    """
    proc = root / "proc"
    controller, group = _group(_read(proc / pid / "cgroup"))
    for viewer in (pid, "self"):
        for top, point in _mounts(_read(proc / viewer / "mountinfo"), controller):
            below = _below(group, top)
            if below is not None:
                seen = proc / viewer / "root" / point.lstrip("/")
                folders = [seen.joinpath(*below[:depth]) for depth in range(len(below), -1, -1)]
                if _read(folders[0] / "cpu.stat"):
                    return tuple(folder / "cpu.stat" for folder in folders)
    return ()


def _group(text: str) -> tuple[str, str]:
    """("cpu", path) where version 1 has the CPU controller, else ("", path) of version 2; see cgroups(7)."""
    lines = [line.split(":", 2) for line in text.splitlines()]
    paths = {"cpu" if "cpu" in names.split(",") else names: path for _, names, path in lines}
    return ("cpu", paths["cpu"]) if "cpu" in paths else ("", paths.get("", ""))


def _mounts(text: str, controller: str) -> Iterator[tuple[str, str]]:
    """(group at the top, mount point) of each mount of the hierarchy; see proc_pid_mountinfo(5)."""
    for line in text.splitlines():
        place, _, kind = line.partition(" - ")
        top, point = place.split()[3:5]
        type_, *_, options = kind.split(" ")  # the source between them may be empty
        if type_ == "cgroup2" if not controller else type_ == "cgroup" and controller in options.split(","):
            yield top, point


def _below(group: str, top: str) -> tuple[str, ...] | None:
    """The group's path from the one at the top of a mount; None where it is not below that one."""
    path, above = Path(group).parts, Path(top).parts
    rest = path[len(above) :]
    return rest if path and path[: len(above)] == above and ".." not in rest else None


def _heat(files: tuple[Path, ...]) -> dict[str, int] | None:
    """Core and package of each CPU added up. Only x86 has such counters, and a virtual machine mostly none."""
    found: dict[str, int] = {}
    for path in files:
        text, cpu = _read(path).strip(), path.parts[-3]
        if text.isdigit():
            found[cpu] = found.get(cpu, 0) + int(text)
    return found or None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not there, or somebody else's
        return ""
