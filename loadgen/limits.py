"""The limits of memory, swap and processes that a process's control groups have, as the kernel says."""

from __future__ import annotations

from pathlib import Path

from loadgen.cgroup import ROOT, Interface, files, read_text
from loadgen.contract import KernelLimits

MEMORY = Interface("memory", "memory.limit_in_bytes", "memory.max")
SWAP = Interface("memory", "memory.memsw.limit_in_bytes", "memory.swap.max")
PIDS = Interface("pids", "pids.max", "pids.max")
NO_LIMIT = 1 << 60
"""Version 1 has a number for "no limit": about 2^63, less what its pages do not fill."""


def read(pid: str, root: Path = ROOT) -> KernelLimits:
    """`memory_bytes`, `swap_bytes` (beside memory), `pids` (threads, too) of process `pid`, or of ours: `self`.

    The least of its group and of those above that can be seen; None: no limit. What cannot be read is left out. About
    half a millisecond.
    """
    memory, pids = (_least(files(pid, wanted, root)) for wanted in (MEMORY, PIDS))
    swap_files = files(pid, SWAP, root)
    swap = _least(swap_files)
    if swap and memory and swap < NO_LIMIT and swap_files[0].name == SWAP.v1:
        swap = max(0, swap - memory)  # version 1 limits both together
    found = {"memory_bytes": memory, "swap_bytes": swap, "pids": pids}
    known = {name: limit for name, limit in found.items() if limit is not None}
    return KernelLimits(**{name: limit if limit < NO_LIMIT else None for name, limit in known.items()})


def _least(paths: tuple[Path, ...]) -> int | None:
    words = [word for path in paths if (word := read_text(path).strip())]
    return min((NO_LIMIT if word == "max" else int(word) for word in words), default=None)
