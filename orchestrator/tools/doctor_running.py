"""Rules of `matrix doctor` on what an engine needs in order to run at all: pure functions over an `Environment`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from orchestrator.layout.text import count
from orchestrator.tools.environment import Environment

Severity = Literal["ok", "warn", "bad"]
Engines = frozenset[str]
BOTH: Engines = frozenset({"docker", "local"})


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `cure` is "" only where all is well; `stops` names the engines that cannot run."""

    check: str
    severity: Severity
    text: str
    cure: str = ""
    stops: Engines = frozenset()


Rule = Callable[[Environment], Iterator[Finding]]


def _docker(environment: Environment) -> Iterator[Finding]:
    if environment.docker is None:
        yield Finding(
            "docker", "warn", f"{environment.docker_trouble}; `matrix run` takes the local engine",
            "install or start Docker, and let your user reach its socket", frozenset({"docker"}),
        )  # fmt: skip
        return
    docker = environment.docker
    text = (
        f"Docker {docker.version} on {docker.system}, storage {docker.storage_driver}, cgroup v{docker.cgroup_version}"
    )
    major = docker.version.partition(".")[0]
    if major.isdigit() and int(major) < 20:
        yield Finding("docker", "warn", f"{text}: older than 20.10, with which nothing is tested", "update Docker")
    elif docker.storage_driver == "vfs":
        yield Finding("docker", "warn", f"{text}: copies every layer in full", "use the storage driver overlay2")
    else:
        yield Finding("docker", "ok", text)


def _base_images(environment: Environment) -> Iterator[Finding]:
    meaning: dict[str, tuple[Severity, str, str]] = {
        "official": ("ok", "is here", ""),
        "pullable": ("ok", "can be pulled", ""),
        "standin": (
            "warn", "is not here; a stand-in made from Debian packages takes its place, and every record says so",
            "let Docker reach a registry, then pull it",
        ),
        "to_be_made": (
            "warn", "cannot be pulled ({trouble}); a stand-in will be made from Debian packages",
            "let Docker reach a registry, or make it now: `make bases`",
        ),
        "none": (
            "bad", "cannot be pulled ({trouble}), and no stand-in can be made here: that needs root and apt-get",
            "let Docker reach a registry, or run as root on Debian",
        ),
    }  # fmt: skip
    usable = any(base.state != "none" for base in environment.bases)
    for base in environment.bases:
        severity, text, cure = meaning[base.state]
        stops = BOTH - {"local"} if base.state == "none" and not usable else frozenset[str]()
        yield Finding(
            f"base {base.flavour}", severity, f"{base.official} {text.format(trouble=base.trouble)}", cure, stops
        )


def _index(environment: Environment) -> Iterator[Finding]:
    if not environment.index_trouble:
        yield Finding("package index", "ok", "answers, with pip's own settings")
        return
    built = environment.docker.built if environment.docker else 0
    yield Finding(
        "package index", "bad",
        environment.index_trouble + (f" (not needed for {count(built, 'image')} built already)" if built else ""),
        "check `pip config list`: index-url, cert, proxy; then try `pip download --no-deps h11`",
        BOTH - {"docker"} if built else BOTH,
    )  # fmt: skip


def _python(environment: Environment) -> Iterator[Finding]:
    machine = environment.machine
    text = f"Python {machine.python}, which the local engine measures"
    if machine.python_debug:
        yield Finding("python", "bad", f"{text}, is a debug build", "use a release build, or --engine docker")
    elif not machine.python_optimised:
        yield Finding(
            "python", "warn", f"{text}, was built without --enable-optimizations",
            "use your distribution's Python or one that `uv python install` brings, or --engine docker",
        )  # fmt: skip
    else:
        yield Finding("python", "ok", text)


def _encoding(environment: Environment) -> Iterator[Finding]:
    name = environment.machine.encoding
    if name.lower().replace("-", "").replace("_", "") == "utf8":
        yield Finding("encoding", "ok", name)
    else:
        yield Finding("encoding", "warn", f"{name} cannot show the ids of cells", "export PYTHONUTF8=1")


RUNNING: tuple[Rule, ...] = (_docker, _base_images, _index, _python, _encoding)
