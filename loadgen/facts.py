"""The facts of the machine as seen from where the generator runs. Unknown facts are None."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from loadgen import limits
from loadgen.affinity import allowed
from loadgen.contract import Machine

CPU = Path("/sys/devices/system/cpu")
CGROUP = Path("/sys/fs/cgroup")


def facts() -> Machine:
    """Everything about the machine that a figure may depend on."""
    cpuinfo = _text(Path("/proc/cpuinfo")) or ""
    return Machine(
        kernel=platform.release(),
        system=platform.system(),
        machine=platform.machine(),
        cpu_model=_cpu_model(cpuinfo),
        cpus_online=os.cpu_count(),
        affinity=tuple(allowed()) or None,
        smt_siblings=_siblings(),
        governor=_text(CPU / "cpu0" / "cpufreq" / "scaling_governor"),
        memory_bytes=_memory(),
        memory_available_bytes=_meminfo("MemAvailable"),
        libc=_libc(),
        python=platform.python_version(),
        implementation=platform.python_implementation(),
        gil=getattr(sys, "_is_gil_enabled", lambda: True)(),
        cgroup_cpus=_quota(),
        limits=limits.read("self"),
        load_average=_load(),
        hypervisor=" hypervisor" in cpuinfo if cpuinfo else None,
        clocksource=_text(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
    )


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _cpu_model(cpuinfo: str) -> str | None:
    names = ("model name", "Model", "cpu model", "Hardware")
    for name in names:
        for line in cpuinfo.splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return platform.processor() or None


def _siblings() -> tuple[str, ...] | None:
    """The groups of logical CPUs that share a core, e.g. ["0,4", "1,5"]; one CPU a group without SMT."""
    paths = sorted(CPU.glob("cpu[0-9]*/topology/thread_siblings_list"))
    groups = {text for path in paths if (text := _text(path))}
    return tuple(sorted(groups)) or None


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _meminfo(name: str) -> int | None:
    for line in (_text(Path("/proc/meminfo")) or "").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None


def _libc() -> str | None:
    """`glibc 2.41` or `musl`: CPython's configuration names the C library it was built for."""
    name, version = platform.libc_ver()
    if name:
        return f"{name} {version}"
    loaders = list(Path("/lib").glob("ld-musl-*"))
    return "musl" if loaders else None


def _quota() -> float | None:
    """CPUs that the control group may use (v2 `cpu.max`, v1 `cpu.cfs_*`); None: no limit known."""
    limit = (_text(CGROUP / "cpu.max") or "").split()
    if len(limit) != 2:
        limit = [_text(CGROUP / "cpu" / f"cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
    quota, period = limit
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _load() -> tuple[float, ...] | None:
    try:
        return os.getloadavg()
    except OSError:
        return None
