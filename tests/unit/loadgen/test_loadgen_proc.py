"""CPU of trees of real processes that come and go between two readings, against what they were told to burn."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen import proc
from loadgen.contract import ServerUse

pytestmark = pytest.mark.skipif(not proc.available(), reason="needs Linux's /proc")

TICKS_S = 0.05
"""Two ticks of 10 ms for each process that waits for others, and what forking itself costs."""

PRELUDE = """
import ctypes, os, signal, sys, threading, time

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))

def fork(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid

def born_and_ended(*works):
    for work in works:
        os.waitpid(fork(work), 0)

def told_to(work):
    "A child that burns now, then waits until it is told to go on and to end."
    ready, say_ready = os.pipe()
    go, say_go = os.pipe()
    def life():
        os.close(say_go)
        burn(0.1)
        os.write(say_ready, b".")
        os.read(go, 1)
        work()
    pid = fork(life)
    os.read(ready, 1)
    return pid, lambda: os.write(say_go, b".")

def reading():
    print(".", flush=True)
    sys.stdin.readline()

"""
TREES: dict[str, tuple[str, float, tuple[int, int, int]]] = {
    "nothing happens": ("reading(); reading()", 0.0, (0, 0, 1)),
    "the process itself": ("reading(); burn(0.2); reading()", 0.2, (0, 0, 1)),
    "born and ended, one after the other": (
        "reading(); born_and_ended(*[lambda: burn(0.04)] * 5); reading()", 0.2, (0, 0, 1),
    ),
    "a child that waited for its own children": (
        "reading(); born_and_ended(lambda: (born_and_ended(lambda: burn(0.1)), burn(0.1))); reading()", 0.2, (0, 0, 1),
    ),
    "a thread of a child": (
        "def life():\n t = threading.Thread(target=burn, args=(0.2,)); t.start(); t.join()\n"
        "reading(); born_and_ended(life); reading()", 0.2, (0, 0, 1),
    ),
    "known before, ended in the stretch": (
        "pid, go = told_to(lambda: burn(0.2)); reading(); go(); os.waitpid(pid, 0); reading()", 0.2, (0, 1, 1),
    ),
    "replaced, and the next replaced too": (
        "pid, go = told_to(lambda: burn(0.1)); reading(); go(); os.waitpid(pid, 0)\n"
        "born_and_ended(lambda: burn(0.1)); told_to(lambda: None); reading()", 0.3, (1, 1, 2),
    ),
    "known with a known child that it waits for": (
        "def life():\n child, go_on = told_to(lambda: burn(0.1))\n"
        " pid, go = told_to(lambda: None)\n reading()\n go_on(); os.waitpid(child, 0); go(); os.waitpid(pid, 0)\n"
        " burn(0.1)\nborn_and_ended(life); reading()", 0.2, (0, 3, 1),
    ),
    "its life before the stretch is older than the parent's": (
        "born_and_ended(lambda: burn(0.3)); reading(); born_and_ended(lambda: burn(0.1)); reading()", 0.1, (0, 0, 1),
    ),
    "ended, not waited for yet": (
        "pid, go = told_to(lambda: burn(0.2)); reading(); go()\n"
        "os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT); reading()", 0.2, (0, 1, 1),
    ),
    "ended before the stretch, waited for in it": (
        "pid, go = told_to(lambda: burn(0.2)); go(); os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT); reading()\n"
        "os.waitpid(pid, 0); reading()", 0.0, (0, 0, 1),
    ),
    "orphans that the first process adopts, as it does in a container": (
        "ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER\n"
        "reading(); born_and_ended(lambda: fork(lambda: burn(0.2))); os.wait(); reading()", 0.2, (0, 0, 1),
    ),
    "children that nobody waits for are not seen": (
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "pid, go = told_to(lambda: burn(0.2)); reading(); go()\n"
        "try: os.waitpid(pid, 0)\nexcept ChildProcessError: pass\nburn(0.1); reading()", 0.1, (0, 1, 1),
    ),
}  # fmt: skip
"""What a process does between two readings; the CPU seconds of that; processes born, ended, and there at the end."""


@contextmanager
def tree(script: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PRELUDE + script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            for pid in reversed(proc.tree(process.pid)):
                subprocess.run(["kill", "-9", str(pid)], check=False)


def read(process: subprocess.Popen[str]) -> proc.Reading:
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == ".\n"
    reading = proc.usage(proc.tree(process.pid))
    process.stdin.write("\n")
    process.stdin.flush()
    return reading


def used(script: str) -> ServerUse:
    with tree(script) as process:
        before = read(process)
        after = read(process)
        found = proc.between(before, after, proc.Memory(0, None, 0))
    assert found is not None
    return found


@pytest.mark.parametrize("name", TREES)
def test_cpu_of_processes_that_come_and_go(name: str) -> None:
    script, burnt, counts = TREES[name]
    found = used(script)
    assert found.cpu_s == pytest.approx(burnt, abs=TICKS_S)
    assert found.user_s + found.system_s == pytest.approx(burnt, abs=TICKS_S)
    assert (found.born, found.ended, found.processes) == counts
    assert found.ended_s is not None
    assert found.ended_s <= found.cpu_s


def test_neighbouring_stretches_add_up() -> None:
    """What one of them leaves out the next one has, and nothing counts twice, however processes end across them."""
    script = (
        "pid, go = told_to(lambda: burn(0.1)); reading(); go(); os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)\n"
        "reading(); os.waitpid(pid, 0); pid, go = told_to(lambda: burn(0.1)); reading(); go(); os.waitpid(pid, 0)\n"
        "reading()"
    )
    with tree(script) as process:
        readings = [read(process) for _ in range(4)]
    parts = [proc.between(*pair, proc.Memory(0, None, 0)) for pair in pairwise(readings)]
    assert [part and part.ended for part in parts] == [1, 0, 1]
    assert sum(part.cpu_s for part in parts if part) == pytest.approx(0.3, abs=TICKS_S)


@pytest.mark.parametrize(("way", "unwaiting"), [("SIG_IGN", 1), ("SIG_DFL", 0)])
def test_who_ignores_the_end_of_children_is_told(way: str, unwaiting: int) -> None:
    assert used(f"signal.signal(signal.SIGCHLD, signal.{way}); reading(); reading()").unwaiting == unwaiting


def test_a_tree_that_is_gone_has_no_figures() -> None:
    with tree("reading(); burn(0.01)") as process:
        before = read(process)
        process.wait()
        after = proc.usage(proc.tree(process.pid))
    assert proc.between(before, after, proc.Memory(0, None, 0)) is None


def test_the_cpus_of_every_thread_are_told() -> None:
    """A thread that pins itself shows, whichever processes it is in."""
    script = "reading(); os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); reading(); reading()"
    with tree(script) as process:
        free, pinned, still = (read(process) for _ in range(3))
    changed = proc.between(free, pinned, proc.Memory(0, None, 0))
    settled = proc.between(pinned, still, proc.Memory(0, None, 0))
    assert changed is not None
    assert settled is not None
    assert settled.cpus is not None
    assert len(settled.cpus) == 1
    assert set(settled.cpus) <= set(changed.cpus or ())


@given(st.sets(st.integers(0, 300), min_size=1))
def test_lists_of_cpus_are_read_as_the_kernel_writes_them(cpus: set[int]) -> None:
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    written = ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    assert list(proc.listed(written)) == sorted(cpus)
