"""The Docker engine: what a run asks of it, handed on to whoever does it."""

from __future__ import annotations

import docker

from loadgen.contract import Machine
from orchestrator.engines.docker.builder import Builder
from orchestrator.engines.docker.client import ENGINE_ERRORS, connect, cpus_of, info_of, missing_helpers
from orchestrator.engines.docker.housekeeping import RunContainers
from orchestrator.engines.docker.images import REPOSITORY, Images
from orchestrator.engines.docker.options import LIMITS
from orchestrator.engines.docker.servers import ContainerObserver, RunningContainer, Servers
from orchestrator.engines.docker.store import Store
from orchestrator.engines.protocol import Box, EngineFacts, Launch, Placement, Say, Seat
from orchestrator.errors import LoadFailed
from orchestrator.images.plan import BuiltImage, ImageSpec


class DockerEngine:
    """Builds images and runs servers and load generators in containers of one run."""

    def __init__(self, run: str, why: str = "", client: docker.DockerClient | None = None) -> None:
        self._client = client or connect()
        self._containers = RunContainers(self._client, run)
        self.builder = Builder(self._client, self._containers.closing)
        self.store = Store(self._client, self.builder)
        self._images = Images(self._client, self.store, self.builder, self._containers)
        self._servers = Servers(self._containers)
        version, why = str(info_of(self._client)["ServerVersion"]), why + missing_helpers(self._client)
        self.facts = EngineFacts("docker", version, cpus_of(self._client), why, LIMITS)

    def build(self, spec: ImageSpec, say: Say) -> BuiltImage:
        return self._images.build(spec, say)

    def prepare(self, say: Say) -> BuiltImage:
        image = self._images.loadgen(say)
        self._servers.loadgen = image.reference
        return image

    def machine(self) -> Machine:
        return self._servers.machine(self.facts.cpus)

    def box(self, cpus: tuple[int, ...]) -> Box | None:
        """What the kernel gave a load generator that was to run on `cpus`; None where none can be tried, or told.

        Only with an image that is here already: nothing is built or pulled. About a second.
        """
        try:
            self._servers.loadgen = str(self._client.images.list(f"{REPOSITORY}/loadgen")[0].id)
            told = self._servers.machine(cpus)
        except (*ENGINE_ERRORS, IndexError, LoadFailed):
            return None
        return Box(told.affinity or (), told.limits)

    def observe(self, placement: Placement) -> ContainerObserver:
        return self._servers.observe(placement)

    def start(self, launch: Launch, seat: Seat | None = None) -> RunningContainer:
        return self._servers.start(launch, seat)

    def close(self) -> None:
        self.builder.close()
        self._containers.close()
