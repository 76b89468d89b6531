"""Where the control groups of a process have their files, in both versions of control groups; see cgroups(7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")


@dataclass(frozen=True)
class Interface:
    """A file of a controller: its name in version 1 and in version 2."""

    controller: str
    v1: str
    v2: str


def files(pid: str, wanted: Interface, root: Path = ROOT) -> tuple[Path, ...]:
    """Such files of the process's control group and of those above it, its own first; none where that is out of reach.

    A container sees its own group only, so they are looked for as the process itself sees them, then as we do.
    """
    proc = root / "proc"
    controller, group = _group(read_text(proc / pid / "cgroup"), wanted.controller)
    name = wanted.v1 if controller else wanted.v2
    for viewer in (pid, "self"):
        for top, point in _mounts(read_text(proc / viewer / "mountinfo"), controller):
            below = _below(group, top)
            if below is not None:
                seen = proc / viewer / "root" / point.lstrip("/")
                folders = [seen.joinpath(*below[:depth]) for depth in range(len(below), -1, -1)]
                if read_text(folders[0] / name):
                    return tuple(folder / name for folder in folders)
    return ()


def read_text(path: Path) -> str:
    """What the file says, or "" where it is not there, or somebody else's."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _group(text: str, controller: str) -> tuple[str, str]:
    """(controller, path) where version 1 has it, else ("", path) of version 2."""
    lines = [line.split(":", 2) for line in text.splitlines()]
    paths = {controller if controller in names.split(",") else names: path for _, names, path in lines}
    return (controller, paths[controller]) if controller in paths else ("", paths.get("", ""))


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
