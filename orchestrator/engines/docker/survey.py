"""What a Docker Engine says of itself and of what earlier runs left in it, for `matrix doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.engines.docker.options import LABEL_KIND, LABEL_OWNER, LABEL_RUN


@dataclass(frozen=True)
class Leftover:
    """A container that carries the label of a run. `owner` is host:pid of the process that made it."""

    name: str
    run: str
    owner: str


@dataclass(frozen=True)
class Survey:
    """`built` counts images of servers that are here already; `root` is the engine's folder on its own machine.

    `unable`: what of our wishes the engine itself says that it discards.
    """

    version: str
    system: str
    architecture: str
    cpus: int
    memory_bytes: int
    storage_driver: str
    cgroup_version: str
    root: str
    built: int
    containers: tuple[Leftover, ...]
    unable: tuple[str, ...] = ()


def read_survey(client: Any) -> Survey:
    """`client` is what `docker.connect` gives."""
    info = client.info()
    return Survey(
        version=str(info["ServerVersion"]),
        system=str(info.get("OperatingSystem", "")),
        architecture=str(info["Architecture"]),
        cpus=int(info["NCPU"]),
        memory_bytes=int(info["MemTotal"]),
        storage_driver=str(info["Driver"]),
        cgroup_version=str(info.get("CgroupVersion", "1")),
        root=str(info["DockerRootDir"]),
        built=len(client.api.images(quiet=True, filters={"label": f"{LABEL_KIND}=image"})),
        containers=tuple(map(_leftover, client.api.containers(all=True, filters={"label": LABEL_RUN}))),
        unable=unable(info),
    )


def unable(info: Mapping[str, Any]) -> tuple[str, ...]:
    """What an engine discards, by its answer to `info`: without a cgroup driver everything, else what it denies."""
    none = info.get("CgroupDriver") == "none"
    return tuple(words for name, words in _WISHES.items() if none or info.get(name) is False)


_WISHES = {"CPUSet": "pin to CPUs", "MemoryLimit": "limit memory", "PidsLimit": "limit processes"}


def _leftover(container: Mapping[str, Any]) -> Leftover:
    labels, names = container["Labels"], container["Names"] or [container["Id"][:12]]
    return Leftover(names[0].lstrip("/"), labels[LABEL_RUN], labels.get(LABEL_OWNER, ""))
