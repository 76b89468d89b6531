"""Rules over an environment that is made up, and that of this machine gathered for real."""

from __future__ import annotations

import io
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from loadgen.contract import KernelLimits
from orchestrator.cli.doctor import findings_table
from orchestrator.engines.docker.survey import Leftover, Survey, unable
from orchestrator.engines.protocol import Box
from orchestrator.tools.doctor import exit_code, findings
from orchestrator.tools.doctor_running import Finding
from orchestrator.tools.environment import BaseState, Environment, is_dead
from orchestrator.tools.machine import Busy, Machine, read_machine

GIB = 1 << 30
QUIET = Machine(
    hostname="bench", system="Linux", architecture="x86_64", python="3.13.5", python_debug=False, python_optimised=True,
    encoding="utf-8", cpus=(0, 1, 2, 3), cgroup_cpus=None, smt_siblings=((0,), (1,), (2,), (3,)), load_average=0.1,
    busy=(), steal=0.0, governor="performance", turbo=False, on_battery=None, clocksource="tsc", hypervisor=False,
    memory_available=16 * GIB, swap_used=0, disk_free=100 * GIB, open_files=65536, somaxconn=4096, port_range=28232,
    tw_reuse=2,
)  # fmt: skip
DOCKER = Survey("28.0.1", "Debian", "x86_64", 4, 32 * GIB, "overlay2", "2", "/var/lib/docker", 0, ())
GOOD = Environment(
    machine=QUIET, docker=DOCKER, docker_trouble="", bases=(BaseState("slim", "python:3.13-slim-trixie", "official"),),
    index_trouble="", dead=(), server_cpus=(1, 2), client_cpus=(3,), most_connections=128,
)  # fmt: skip
DEAD = Leftover("left", "2026-11-30T10-00-00-quick", "bench:99999999")


def _grave(environment: Environment) -> dict[str, str]:
    return {finding.check: finding.severity for finding in findings(environment) if finding.severity != "ok"}


def test_nothing_to_find() -> None:
    assert _grave(GOOD) == {}
    assert exit_code(findings(GOOD)) == 0


@pytest.mark.parametrize(
    ("changes", "check", "severity"),
    [
        ({"python_debug": True}, "python", "bad"),
        ({"python_optimised": False}, "python", "warn"),
        ({"encoding": "latin-1"}, "encoding", "warn"),
        ({"cgroup_cpus": 1.5}, "cpu quota", "bad"),
        ({"smt_siblings": ((0, 1), (2, 3))}, "smt", "warn"),
        ({"busy": (Busy(7, "cc1", 0.9),)}, "other processes", "bad"),
        ({"busy": (Busy(7, "cron", 0.06),)}, "other processes", "warn"),
        ({"load_average": 3.0}, "load average", "warn"),
        ({"steal": 0.02}, "steal", "warn"),
        ({"steal": 0.2}, "steal", "bad"),
        ({"governor": "powersave"}, "governor", "warn"),
        ({"turbo": True}, "turbo", "warn"),
        ({"on_battery": True}, "power", "bad"),
        ({"hypervisor": True}, "virtual machine", "warn"),
        ({"architecture": "arm64"}, "emulation", "bad"),
        ({"memory_available": GIB // 2}, "memory", "bad"),
        ({"swap_used": GIB}, "swap", "warn"),
        ({"disk_free": 5 * GIB}, "disk", "warn"),
        ({"open_files": 256}, "open files", "bad"),
        ({"somaxconn": 64}, "somaxconn", "warn"),
        ({"tw_reuse": 0}, "ports", "warn"),
        ({"port_range": 1000}, "ports", "warn"),
        ({"clocksource": "hpet"}, "clock", "warn"),
    ],
)
def test_each_fact_of_the_machine(changes: dict[str, Any], check: str, severity: str) -> None:
    environment = replace(GOOD, machine=replace(QUIET, **changes))
    assert _grave(environment) == {check: severity}
    assert exit_code(findings(environment)) == (1 if severity == "bad" else 0)


@pytest.mark.parametrize(
    ("changes", "check", "severity", "code"),
    [
        ({"docker": None, "docker_trouble": "no Docker Engine answers", "bases": ()}, "docker", "warn", 0),
        ({"docker": replace(DOCKER, version="19.03.1")}, "docker", "warn", 0),
        ({"docker": replace(DOCKER, storage_driver="vfs")}, "docker", "warn", 0),
        ({"docker": replace(DOCKER, cpus=1)}, "cpus", "bad", 1),
        ({"docker": replace(DOCKER, cpus=2)}, "cpus", "warn", 0),
        ({"bases": (BaseState("slim", "python:3.13", "pullable"),)}, "", "", 0),
        ({"bases": (BaseState("slim", "python:3.13", "standin"),)}, "base slim", "warn", 0),
        ({"bases": (BaseState("slim", "python:3.13", "to_be_made", "no such host"),)}, "base slim", "warn", 0),
        ({"bases": (BaseState("slim", "python:3.13", "none", "no such host"),)}, "base slim", "bad", 1),
        ({"index_trouble": "Connection refused"}, "package index", "bad", 3),
        ({"index_trouble": "refused", "docker": replace(DOCKER, built=3)}, "package index", "bad", 1),
        ({"dead": (DEAD,)}, "leftovers", "bad", 1),
        ({"docker": replace(DOCKER, unable=("pin to CPUs",))}, "pinning and limits", "bad", 1),
        ({"box": Box((3,), KernelLimits(memory_bytes=2 * GIB, swap_bytes=0, pids=256))}, "", "", 0),
        ({"box": Box((), KernelLimits())}, "", "", 0),  # neither is told
        ({"box": Box((0, 1, 2, 3), KernelLimits())}, "pinning and limits", "bad", 1),
        ({"box": Box((3,), KernelLimits(pids=None))}, "pinning and limits", "bad", 1),
    ],
)
def test_each_fact_around_it(changes: dict[str, Any], check: str, severity: str, code: int) -> None:
    environment = replace(GOOD, **changes)
    assert _grave(environment) == ({check: severity} if check else {})
    assert exit_code(findings(environment)) == code


def test_a_system_that_does_not_pin_says_so() -> None:
    environment = replace(GOOD, docker=None, docker_trouble="none", bases=(), machine=replace(QUIET, system="Darwin"))
    assert _grave(environment) == {"docker": "warn", "pinning": "warn"}


@pytest.mark.parametrize(
    ("info", "found"),
    [
        ({"CPUSet": True, "MemoryLimit": True, "PidsLimit": True, "CgroupDriver": "systemd"}, ()),
        ({"CPUSet": False, "MemoryLimit": True, "PidsLimit": True}, ("pin to CPUs",)),
        ({"CPUSet": True, "CgroupDriver": "none"}, ("pin to CPUs", "limit memory", "limit processes")),
        ({}, ()),  # an engine that does not say
    ],
)
def test_what_an_engine_says_that_it_discards(info: dict[str, Any], found: tuple[str, ...]) -> None:
    assert unable(info) == found


processes = st.builds(Busy, st.integers(1, 99), st.just("cc1"), st.floats(0.06, 1), st.sampled_from(["", "me", "you"]))


@given(st.lists(processes, min_size=1, max_size=5), st.sampled_from(["", "me"]))
def test_nobody_is_told_to_end_what_is_not_his_own(busy: list[Busy], user: str) -> None:
    environment = replace(GOOD, machine=replace(QUIET, busy=tuple(busy), user=user))
    (finding,) = [one for one in findings(environment) if one.check == "other processes"]
    own = [process for process in busy if user and process.user == user]
    assert "kill" not in finding.cure
    assert ("end " in finding.cure) == bool(own)
    assert ("ask " in finding.cure) == (len(own) < len(busy))
    for process in busy:
        assert process.user in finding.text
        assert process in own or (process.user or "whoever runs them") in finding.cure


def test_neither_engine_can_run() -> None:
    environment = replace(GOOD, docker=None, docker_trouble="none", bases=(), index_trouble="refused")
    assert exit_code(findings(environment)) == 3


def test_what_is_wrong_has_a_cure_and_is_printed() -> None:
    environment = replace(GOOD, dead=(DEAD,), machine=replace(QUIET, governor="powersave", swap_used=GIB, turbo=True))
    found = findings(environment)
    assert all(bool(finding.cure) == (finding.severity != "ok") for finding in found)
    stream = io.StringIO()
    Console(file=stream, width=100).print(findings_table(found))
    for finding in found:
        assert finding.check in stream.getvalue()
    assert "-> sudo cpupower frequency-set -g performance" in stream.getvalue()


UNKNOWN = st.fixed_dictionaries({}, optional=dict.fromkeys(
    ("cgroup_cpus", "load_average", "steal", "governor", "turbo", "on_battery", "clocksource", "hypervisor",
     "open_files", "somaxconn", "port_range", "tw_reuse"), st.none(),
))  # fmt: skip


@given(UNKNOWN, st.booleans())
@settings(max_examples=30)
def test_an_unknown_fact_is_no_finding(unknown: dict[str, Any], docker: bool) -> None:
    environment = replace(GOOD, machine=replace(QUIET, smt_siblings=(), **unknown), docker=DOCKER if docker else None)
    assert set(_grave(environment)) <= {"docker"}


def test_owner_decides_whether_a_leftover_is_dead() -> None:
    host = socket.gethostname()
    owners = {f"{host}:{os.getpid()}": False, f"{host}:99999999": True, "elsewhere:99999999": False, "": False}
    assert {owner: is_dead(Leftover("c", "run", owner), host) for owner in owners} == owners


def test_this_machine_is_read(tmp_path: Path) -> None:
    machine = read_machine(tmp_path)
    assert machine.cpus
    assert machine.memory_available > 0
    assert machine.user == psutil.Process().username()
    assert machine.disk_free > 0
    assert all(process.pid != os.getpid() for process in machine.busy)
    assert machine.steal is None or 0 <= machine.steal <= 1
    found = findings(replace(GOOD, machine=machine))
    assert all(isinstance(finding, Finding) for finding in found)
