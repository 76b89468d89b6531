"""Rules of `matrix doctor` on what bends figures: pure functions over an `Environment`, silent on what is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.engines.docker.options import LIMITS
from orchestrator.engines.protocol import cpus_named
from orchestrator.layout.text import count
from orchestrator.tools.doctor_running import Finding, Rule
from orchestrator.tools.environment import Environment
from orchestrator.tools.machine import Busy

GIB = 1 << 30
BUSY_SHARE = 0.05
STEAL_WARN, STEAL_BAD = 0.01, 0.05
GOOD_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "timebase", "tod")
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}


def _cpus(environment: Environment) -> Iterator[Finding]:
    count = environment.docker.cpus if environment.docker else len(environment.machine.cpus)
    server, client = (",".join(map(str, cpus)) for cpus in (environment.server_cpus, environment.client_cpus))
    split = f"CPUs of the server: {server}; of the load generator: {client}"
    if count < 2:
        yield Finding(
            "cpus", "bad", "one CPU: server and load generator take it from each other", "use two CPUs or more"
        )
    elif count < 4:
        yield Finding(
            "cpus", "warn", f"{count} CPUs, none is left for everything else. {split}", "use four CPUs or more"
        )
    else:
        yield Finding("cpus", "ok", f"{count} CPUs. {split}")
    quota = environment.machine.cgroup_cpus
    if quota is not None and quota < len(environment.machine.cpus):
        yield Finding(
            "cpu quota", "bad", f"the control group may use {quota:g} CPUs and is throttled beyond",
            "raise or remove the limit (`--cpus` of a container)",
        )  # fmt: skip


def _box(environment: Environment) -> Iterator[Finding]:
    """Pinning and limits: what the engine says, then what a container really got."""
    if environment.docker is None:
        if environment.machine.system != "Linux":
            yield Finding(
                "pinning", "warn",
                f"{environment.machine.system} pins no process: server and load generator share all CPUs",
                "measure with Docker, or on Linux",
            )  # fmt: skip
        return
    lacking = [f"does not {wish}" for wish in environment.docker.unable]
    if environment.box and not lacking:
        elsewhere = environment.box.cpus and set(environment.box.cpus) != set(environment.client_cpus)
        asked = f"; asked for: {cpus_named(environment.client_cpus)}"
        lacking = [f"lets a container run on {cpus_named(environment.box.cpus)}{asked}"] if elsewhere else []
        missed = LIMITS["client"].missed(environment.box.limits)
        lacking += [f"lets a container have {missed}"] if missed else []
    if lacking:
        yield Finding(
            "pinning and limits", "bad", f"this engine {', and '.join(lacking)}: rows will be unranked",
            "use an engine that runs as root, or give a rootless one its controllers: "
            "`sudo systemctl edit user@.service`, [Service] Delegate=cpu cpuset io memory pids",
        )  # fmt: skip
    elif environment.box:
        yield Finding("pinning and limits", "ok", "a container got those that were asked for")


def _smt(environment: Environment) -> Iterator[Finding]:
    server, client = set(environment.server_cpus), set(environment.client_cpus)
    shared = [group for group in environment.machine.smt_siblings if server & set(group) and client & set(group)]
    if shared:
        yield Finding(
            "smt", "warn", f"server and load generator share a core: CPUs {','.join(map(str, shared[0]))}",
            "name CPUs of different cores under `cpus` in matrix.yaml",
        )  # fmt: skip
    elif environment.machine.smt_siblings:
        yield Finding("smt", "ok", "server and load generator share no core")


def _load(environment: Environment) -> Iterator[Finding]:
    busy = [process for process in environment.machine.busy if process.share > BUSY_SHARE]
    average = environment.machine.load_average
    if busy:
        named = ", ".join(map(_named, busy[:5]))
        share = sum(process.share for process in busy)
        yield Finding(
            "other processes", "bad" if share > 0.5 else "warn", f"they use CPU: {named}",
            _how_to_quieten(busy[:5], environment.machine.user),
        )  # fmt: skip
    else:
        yield Finding("other processes", "ok", f"none uses more than {BUSY_SHARE:.0%} of a CPU")
    if average is not None and average > 0.5 * len(environment.machine.cpus) and not busy:
        yield Finding("load average", "warn", f"{average:.2f} over the last minute", "wait until it is under 0.5")


def _named(process: Busy) -> str:
    whose = f" of {process.user}" if process.user else ""
    return f"{process.name} ({process.pid}{whose}) {process.share:.0%}"


def _how_to_quieten(busy: Sequence[Busy], user: str) -> str:
    """What is our own may be ended; the rest is somebody's, also where it is not known whose."""
    own = [process for process in busy if user and process.user == user]
    others = sorted({process.user or "whoever runs them" for process in busy if process not in own})
    if not others:
        return "end these programs, or wait until they are done"
    asked = f"wait until the others' are done, or ask {' and '.join(others)} to pause them"
    return f"end your own programs; {asked}" if own else asked


def _steal(environment: Environment) -> Iterator[Finding]:
    steal = environment.machine.steal
    if steal is None:
        return
    text = f"the hypervisor took {steal:.1%} of the CPUs just now"
    if steal > STEAL_WARN:
        yield Finding("steal", "bad" if steal > STEAL_BAD else "warn", text, "use a machine with CPUs of its own")
    else:
        yield Finding("steal", "ok", text)


def _clock_speed(environment: Environment) -> Iterator[Finding]:
    machine = environment.machine
    if machine.governor is not None and machine.governor != "performance":
        yield Finding(
            "governor", "warn", f"{machine.governor}: the clock speed follows the load",
            "sudo cpupower frequency-set -g performance",
        )  # fmt: skip
    elif machine.governor:
        yield Finding("governor", "ok", machine.governor)
    if machine.turbo:
        yield Finding(
            "turbo", "warn", "on: the clock speed follows the temperature",
            "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo   (AMD: echo 0 to …/cpufreq/boost)",
        )  # fmt: skip
    if machine.on_battery:
        yield Finding("power", "bad", "on battery: the machine saves power", "plug it in")


def _virtual(environment: Environment) -> Iterator[Finding]:
    host, docker = environment.machine.architecture.lower(), environment.docker
    if docker and ARCHITECTURES.get(host, host) != ARCHITECTURES.get(docker.architecture, docker.architecture):
        yield Finding(
            "emulation", "bad", f"Docker runs {docker.architecture}, this Python {host}: one of them is emulated",
            "use a Python and a Docker of the machine's own architecture",
        )  # fmt: skip
    if environment.machine.hypervisor or (docker and "Docker Desktop" in docker.system):
        yield Finding(
            "virtual machine", "warn", "other guests of the host may take CPU, cache and memory bandwidth",
            "trust ratios measured side by side more than absolute figures; repeat at another hour",
        )  # fmt: skip


def _memory(environment: Environment) -> Iterator[Finding]:
    free = environment.machine.memory_available
    text = f"{free / GIB:.1f} GiB available"
    if free < 2 * GIB:
        yield Finding("memory", "bad" if free < GIB else "warn", text, "end other programs: 2 GiB should be free")
    else:
        yield Finding("memory", "ok", text)
    if environment.machine.swap_used > GIB // 4:
        yield Finding(
            "swap",
            "warn",
            f"{environment.machine.swap_used / GIB:.1f} GiB are in use",
            "sudo swapoff -a && sudo swapon -a",
        )


def _disk(environment: Environment) -> Iterator[Finding]:
    free = environment.machine.disk_free
    text = f"{free / GIB:.1f} GiB free"
    if free < 10 * GIB:
        yield Finding(
            "disk", "bad" if free < 3 * GIB else "warn", text, "`docker system df` shows what images take; 10 GiB help"
        )
    else:
        yield Finding("disk", "ok", text)


def _limits(environment: Environment) -> Iterator[Finding]:
    machine, needed = environment.machine, 2 * environment.most_connections + 256
    if machine.open_files is not None and machine.open_files < needed:
        yield Finding("open files", "bad", f"{machine.open_files} allowed, {needed} needed", f"ulimit -n {needed}")
    elif machine.open_files is not None:
        yield Finding("open files", "ok", f"{machine.open_files} allowed")
    if machine.somaxconn is not None and machine.somaxconn < environment.most_connections:
        yield Finding(
            "somaxconn", "warn",
            f"{machine.somaxconn}, and suites open {environment.most_connections} connections at once",
            "sudo sysctl net.core.somaxconn=4096   (local engine; containers have their own)",
        )  # fmt: skip
    if machine.tw_reuse == 0 or (machine.port_range or 1 << 16) < 20_000:
        yield Finding(
            "ports", "warn", "a server that closes each connection can use up the client's ports",
            'sudo sysctl net.ipv4.tcp_tw_reuse=2 net.ipv4.ip_local_port_range="32768 60999"   (local engine)',
        )  # fmt: skip


def _clock(environment: Environment) -> Iterator[Finding]:
    clock = environment.machine.clocksource
    if clock is None:
        return
    if clock in GOOD_CLOCKS:
        yield Finding("clock", "ok", clock)
    else:
        yield Finding(
            "clock", "warn", f"{clock}: reading it costs a system call or more for each request",
            "boot with clocksource=tsc where the kernel trusts it: see `dmesg | grep -i clocksource`",
        )  # fmt: skip


def _leftovers(environment: Environment) -> Iterator[Finding]:
    if environment.dead:
        names = ", ".join(one.name for one in environment.dead[:5])
        yield Finding(
            "leftovers", "bad", f"{count(len(environment.dead), 'container')} of dead runs: {names}", "matrix clean"
        )
    elif environment.docker:
        yield Finding("leftovers", "ok", "no container of a dead run")


MEASURING: tuple[Rule, ...] = (
    _cpus, _box, _smt, _load, _steal, _clock_speed, _virtual, _memory, _disk, _limits, _clock, _leftovers,
)  # fmt: skip
