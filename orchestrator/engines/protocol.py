"""The seam between measuring and the place where servers run, and the frozen values that cross it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from msgspec import UNSET

from loadgen.contract import KernelLimits, Machine
from orchestrator.engines.agent import Agent
from orchestrator.engines.ends import Exit
from orchestrator.images.plan import BuiltImage, ImageSpec
from orchestrator.matrix.resolved import Variant

Say = Callable[[str], None]
"""Takes one line for people: what is going on now."""

Side = Literal["server", "client"]


@dataclass(frozen=True)
class Limits:
    """What a container may have: bytes of memory, of swap beside it, and processes, with their threads."""

    memory_bytes: int
    swap_bytes: int
    pids: int

    def missed(self, held: KernelLimits) -> str:
        """The first limit that is another in `held`, in words; "" where all that could be read agree."""
        for name, words in _LIMITED.items():
            limit, asked = getattr(held, name), getattr(self, name)
            if limit not in (UNSET, asked):
                return f"{'any number of' if limit is None else f'{limit:,}'} {words}; asked for: {asked:,}"
        return ""


_LIMITED = {"memory_bytes": "bytes of memory", "swap_bytes": "bytes of swap", "pids": "processes"}


def cpus_named(cpus: Iterable[int]) -> str:
    """`CPU 0`, `CPUs 0,2`."""
    listed = sorted(cpus)
    return f"CPU{'s' * (len(listed) > 1)} {','.join(map(str, listed))}"


@dataclass(frozen=True)
class Box:
    """What the kernel allows a process in a container: CPUs (none: not told), and limits; None there: no limit."""

    cpus: tuple[int, ...]
    limits: KernelLimits


@dataclass(frozen=True)
class EngineFacts:
    """Which engine runs, its version, how many CPUs it may give out, and why it was chosen.

    `limits`: those that it asks for, of the `server` and of the `client`, which is the load generator.
    """

    name: str
    version: str
    cpus: tuple[int, ...]
    why: str = ""
    limits: Mapping[Side, Limits] = field(default_factory=dict)


@dataclass(frozen=True)
class Placement:
    """CPUs of the server and of the load generator; `shared` where the machine has too few to keep them apart."""

    server: tuple[int, ...]
    client: tuple[int, ...]
    shared: bool = False


@dataclass(frozen=True)
class Launch:
    """One server to start."""

    id: str
    image: BuiltImage
    variant: Variant
    module: str
    workers: int
    threads: int | None
    tls: bool
    placement: Placement

    def argv(self, *, host: str, port: int, apps: str, venv: str, tmp: str, tls: str) -> tuple[str, ...]:
        """The launch command on an engine whose files are at these paths."""
        values = {
            "app": f"{self.module}:app",
            "module": self.module,
            "file": f"{apps}/{self.module}.py",
            "apps": apps,
            "host": host,
            "port": str(port),
            "workers": str(self.workers),
            "threads": str(1 if self.threads is None else self.threads),
            "venv": venv,
            "bin": f"{venv}/bin",
            "tmp": tmp,
            "key": f"{tls}/key.pem",
            "cert": f"{tls}/cert.pem",
        }
        return self.variant.argv(values, tls=self.tls)


def server_environment(variant: Variant, *, apps: str, tmp: str) -> dict[str, str]:
    """Environment of a server, the same on every engine: nothing of the user's own leaks into it."""
    fixed = {
        "PYTHONPATH": apps,
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": tmp,
        "TMPDIR": tmp,
        "LANG": "C.UTF-8",
    }
    return fixed | dict(variant.env)


@dataclass(frozen=True)
class Seat:
    """A place for a server beside an observer: the network to join, in the engine's words, and a port of its own."""

    agent: Agent
    network: str
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Observer(Protocol):
    """A load generator with a network of its own: servers start beside it, and it outlives them."""

    @property
    def agent(self) -> Agent: ...

    def seat(self) -> Seat:
        """The next free place."""

    def stop(self) -> None: ...


class Running(Protocol):
    """A started server with a load generator's agent beside it."""

    @property
    def agent(self) -> Agent: ...

    @property
    def url(self) -> str:
        """Where the agent reaches the server, such as http://127.0.0.1:8000."""

    @property
    def ca(self) -> str | None:
        """The CA's file as the agent sees it, or None without TLS."""

    @property
    def root_pid(self) -> int:
        """The root of the server's process tree, as the agent sees it."""

    def log(self) -> str:
        """The end of what the server wrote to its standard output and error."""

    @property
    def signaller(self) -> Agent:
        """An agent that sees the server's processes and may end with them; made when first asked for."""

    def wait(self, timeout_s: float) -> Exit | None:
        """How the server ended, or None where it still runs after `timeout_s`; 0.0 looks without waiting."""

    def stop(self) -> None:
        """End server and agents (not an observer), and remove what was made for them."""


class Engine(Protocol):
    """docker, local or memory."""

    @property
    def facts(self) -> EngineFacts: ...

    def build(self, spec: ImageSpec, say: Say) -> BuiltImage:
        """Make the image, or find it made. Raises BuildFailed, EnvironmentProblem."""

    def prepare(self, say: Say) -> BuiltImage:
        """Make what all servers need: the load generator's image. Raises BuildFailed, EnvironmentProblem."""

    def machine(self) -> Machine:
        """Facts of the machine, as the load generator sees them where it runs."""

    def observe(self, placement: Placement) -> Observer:
        """Start an observer. Raises ServerFailed."""

    def start(self, launch: Launch, seat: Seat | None = None) -> Running:
        """Start a server and its agent, or beside an observer, without waiting for an answer. Raises ServerFailed."""

    def close(self) -> None:
        """Remove every process and container that this engine made. May be called at any time, twice too."""
