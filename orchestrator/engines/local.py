"""The local engine: a virtual environment per image and plain processes, for machines without Docker."""

from __future__ import annotations

import contextlib
import os
import platform
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from loadgen.contract import Hello, Machine
from orchestrator.engines.agent import Agent
from orchestrator.engines.ends import Exit
from orchestrator.engines.protocol import EngineFacts, Launch, Placement, Say, Seat, server_environment
from orchestrator.engines.tls import certificate
from orchestrator.engines.venvs import build_environment
from orchestrator.errors import ServerFailed
from orchestrator.images.plan import LOADGEN, ROOT, BaseFacts, BuiltImage, ImageSpec

APPS = ROOT / "images" / "apps"
LOG_TAIL_BYTES = 20_000
_AGENT = (sys.executable, "-m", "loadgen", "agent")


class PipeChannel:
    """Standard input and output of a process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._lines = b""

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def receive(self, timeout_s: float) -> str:
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._lines:
            if not select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            more = os.read(self._process.stdout.fileno(), 1 << 16)
            if not more:
                raise ConnectionResetError("its process ended")
            self._lines += more
        line, _, self._lines = self._lines.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


class ProcessObserver:
    """A load generator's process; the network is the machine's own."""

    def __init__(self, placement: Placement) -> None:
        self._load = _spawn(_AGENT, placement.client, cwd=ROOT)
        self.agent = Agent(PipeChannel(self._load))

    def seat(self) -> Seat:
        return Seat(self.agent, "", _free_port())

    def stop(self) -> None:
        self.agent.close()
        _kill_group(self._load)


class RunningProcess:
    """A server's process group, and the load generator's agents beside it."""

    def __init__(self, launch: Launch, folder: Path, seat: Seat | None) -> None:
        port = seat.port if seat else _free_port()
        certificate().write(folder)
        self.url = f"{'https' if launch.tls else 'http'}://127.0.0.1:{port}"
        self.ca = str(folder / "ca.pem") if launch.tls else None
        self._folder = folder
        self._log = folder / "server.log"
        venv, tmp = launch.image.reference, str(folder)
        argv = launch.argv(host="127.0.0.1", port=port, apps=str(APPS), venv=venv, tmp=tmp, tls=tmp)
        environment = server_environment(launch.variant, apps=str(APPS), tmp=tmp)
        environment["PATH"] = os.pathsep.join((f"{venv}/bin", os.environ.get("PATH", os.defpath)))
        argv = (shutil.which(argv[0], path=environment["PATH"]) or argv[0], *argv[1:])
        with self._log.open("wb") as log:
            self._server = _spawn(argv, launch.placement.server, env=environment, cwd=APPS, log=log.fileno())
        self.root_pid = self._server.pid
        self._exit: Exit | None = None
        self._reaper = threading.Thread(target=self._reap, daemon=True)
        self._reaper.start()
        self._placement = launch.placement
        self._agents: list[ProcessObserver] = []
        self.agent = seat.agent if seat else self._new_agent()

    def _new_agent(self) -> Agent:
        self._agents.append(ProcessObserver(self._placement))
        return self._agents[-1].agent

    @cached_property
    def signaller(self) -> Agent:
        return self._new_agent()

    def _reap(self) -> None:
        code = self._server.wait()
        self._exit = Exit(code if code >= 0 else 128 - code, time.time_ns())

    def log(self) -> str:
        return self._log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")

    def wait(self, timeout_s: float) -> Exit | None:
        self._reaper.join(timeout_s)
        return self._exit

    def stop(self) -> None:
        for agent in self._agents:
            agent.stop()
        _kill_group(self._server)
        shutil.rmtree(self._folder, ignore_errors=True)


class LocalEngine:
    """Virtual environments under `cache`, and processes of one run."""

    def __init__(self, cache: Path, why: str = "") -> None:
        self._cache = cache
        self._running: list[RunningProcess | ProcessObserver] = []
        self._closed = threading.Event()
        version = f"Python {platform.python_version()} on {platform.system()}"
        self.facts = EngineFacts("local", version, own_cpus(), why)

    def build(self, spec: ImageSpec, say: Say) -> BuiltImage:
        return build_environment(spec, self._cache / "venvs", say)

    def prepare(self, say: Say) -> BuiltImage:
        """Nothing to make: the load generator is installed beside us."""
        base = BaseFacts(platform.python_version(), "", "", "the host's own Python")
        return BuiltImage(LOADGEN, sys.prefix, "", base, platform.machine(), {"outcome": "pure"})

    def machine(self) -> Machine:
        process = _spawn(_AGENT, self.facts.cpus, cwd=ROOT)
        try:
            return Agent(PipeChannel(process)).ask(Hello()).facts
        finally:
            _kill_group(process)

    def observe(self, placement: Placement) -> ProcessObserver:
        observer = ProcessObserver(placement)
        self._running.append(observer)
        return observer

    def start(self, launch: Launch, seat: Seat | None = None) -> RunningProcess:
        if self._closed.is_set():
            raise ServerFailed(f"{launch.id}: the run was interrupted")
        folder = Path(tempfile.mkdtemp(prefix="appserver-matrix-"))
        try:
            running = RunningProcess(launch, folder, seat)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise ServerFailed(f"{launch.id}: {error.strerror or error}: {launch.variant.run.split()[0]}") from error
        self._running.append(running)
        return running

    def close(self) -> None:
        self._closed.set()
        for running in self._running:
            running.stop()
        self._running.clear()


def own_cpus() -> tuple[int, ...]:
    """The CPUs that this program may use; all of the machine's where the system does not tell (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _affinity(cpus: Sequence[int]) -> Iterator[None]:
    """This thread's CPUs for a while: a child inherits them, from its first instruction on. No-op on macOS."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _spawn(
    argv: Sequence[str], cpus: Sequence[int], *, cwd: Path, env: dict[str, str] | None = None, log: int | None = None
) -> subprocess.Popen[bytes]:
    """A process in a session of its own, so that Ctrl-C reaches us alone and its whole group can be ended."""
    piped = log is None
    with _affinity(cpus):
        return subprocess.Popen(
            argv, cwd=cwd, env=env, start_new_session=True,
            stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
            stdout=subprocess.PIPE if piped else log, stderr=subprocess.DEVNULL if piped else log,
        )  # fmt: skip


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
