"""What this machine is and does right now, as far as it can spoil a measurement. Unknown facts are None."""

from __future__ import annotations

import locale
import os
import platform
import shutil
import socket
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from orchestrator.engines.local import own_cpus

WATCH_S = 0.5
"""How long other processes are watched."""

_CPU = Path("/sys/devices/system/cpu")
_SYSCTL = Path("/proc/sys/net")


@dataclass(frozen=True)
class Busy:
    """Another process, the share of one CPU that it used while it was watched, and whose it is; "": not known."""

    pid: int
    name: str
    share: float
    user: str = ""


@dataclass(frozen=True)
class Machine:
    """The host as this program sees it. Memory and disk in bytes, `steal` as a share of all CPUs' time.

    `smt_siblings` groups the logical CPUs of one core; `cgroup_cpus` is the CPU quota of our control group.
    `user` is who runs this program.
    """

    hostname: str
    system: str
    architecture: str
    python: str
    python_debug: bool
    python_optimised: bool
    encoding: str
    cpus: tuple[int, ...]
    cgroup_cpus: float | None
    smt_siblings: tuple[tuple[int, ...], ...]
    load_average: float | None
    busy: tuple[Busy, ...]
    steal: float | None
    governor: str | None
    turbo: bool | None
    on_battery: bool | None
    clocksource: str | None
    hypervisor: bool | None
    memory_available: int
    swap_used: int
    disk_free: int
    open_files: int | None
    somaxconn: int | None
    port_range: int | None
    tw_reuse: int | None
    user: str = ""


def read_machine(folder: Path) -> Machine:
    """Watch the machine for half a second. `folder` is where results and environments go."""
    busy, steal = _watch()
    return Machine(
        hostname=socket.gethostname(),
        system=platform.system(),
        architecture=platform.machine(),
        python=platform.python_version(),
        python_debug=bool(sysconfig.get_config_var("Py_DEBUG")),
        python_optimised="--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS")),
        encoding=sys.stdout.encoding or locale.getpreferredencoding(False),
        cpus=own_cpus(),
        cgroup_cpus=_quota(),
        smt_siblings=_siblings(),
        load_average=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        busy=busy,
        steal=steal,
        governor=_text(_CPU / "cpu0/cpufreq/scaling_governor"),
        turbo=_turbo(),
        on_battery=_on_battery(),
        clocksource=_text(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        hypervisor=_hypervisor(),
        memory_available=psutil.virtual_memory().available,
        swap_used=psutil.swap_memory().used,
        disk_free=shutil.disk_usage(folder).free,
        open_files=_open_files(),
        somaxconn=_number(_SYSCTL / "core/somaxconn"),
        port_range=_port_range(),
        tw_reuse=_number(_SYSCTL / "ipv4/tcp_tw_reuse"),
        user=_user(os.getpid()),
    )


def _watch() -> tuple[tuple[Busy, ...], float | None]:
    """CPU of every other process, and what a hypervisor took, over WATCH_S."""
    before, times, began = dict(_cpu_seconds()), psutil.cpu_times(), time.monotonic()
    time.sleep(WATCH_S)
    after, times_after, seconds = dict(_cpu_seconds()), psutil.cpu_times(), time.monotonic() - began
    shares = {key: (used - before.get(key, used)) / seconds for key, used in after.items()}
    used = {key: share for key, share in shares.items() if share > 0 and key[0] != os.getpid()}
    busy = tuple(Busy(pid, name, share, _user(pid)) for (pid, name), share in used.items())
    total = sum(times_after) - sum(times)
    steal = (times_after.steal - times.steal) / total if hasattr(times, "steal") and total > 0 else None
    return tuple(sorted(busy, key=lambda process: -process.share)), steal


def _cpu_seconds() -> Iterator[tuple[tuple[int, str], float]]:
    for process in psutil.process_iter(["name", "cpu_times"]):
        if times := process.info["cpu_times"]:
            yield (process.pid, process.info["name"]), times.user + times.system


def _user(pid: int) -> str:
    """Whose process it is; "" where it ended, or the system does not tell."""
    try:
        return psutil.Process(pid).username()
    except (psutil.Error, KeyError):
        return ""


def _quota() -> float | None:
    """CPUs of the control group's limit: v2 `cpu.max`, or v1 `cpu.cfs_*`."""
    group = Path("/sys/fs/cgroup")
    limit = (_text(group / "cpu.max") or "").split()
    if len(limit) != 2:
        limit = [_text(group / f"cpu/cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
    return int(limit[0]) / int(limit[1]) if all(word.isdigit() for word in limit) else None


def _siblings() -> tuple[tuple[int, ...], ...]:
    groups = {_text(path) for path in _CPU.glob("cpu[0-9]*/topology/thread_siblings_list")}
    return tuple(sorted(tuple(_numbers(text)) for text in groups if text))


def _numbers(text: str) -> Iterator[int]:
    """`0,4-5` -> 0 4 5, the kernel's form of a CPU list."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _turbo() -> bool | None:
    if (off := _number(_CPU / "intel_pstate/no_turbo")) is not None:
        return off == 0
    boost = _number(_CPU / "cpufreq/boost")
    return None if boost is None else boost == 1


def _on_battery() -> bool | None:
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    return None if battery is None or battery.power_plugged is None else not battery.power_plugged


def _hypervisor() -> bool | None:
    """x86 kernels show it as a CPU flag, others in /sys."""
    cpuinfo = _text(Path("/proc/cpuinfo"))
    return None if cpuinfo is None else " hypervisor" in cpuinfo or Path("/sys/hypervisor/type").exists()


def _open_files() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _port_range() -> int | None:
    words = (_text(_SYSCTL / "ipv4/ip_local_port_range") or "").split()
    return int(words[1]) - int(words[0]) + 1 if len(words) == 2 else None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text and text.lstrip("-").isdigit() else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
