"""What is there of ours in the Docker Engine, removed: the containers of a run, and images."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import docker
from docker.errors import APIError, ImageNotFound
from docker.models.containers import Container

from orchestrator.engines.docker.client import ENGINE_ERRORS, first_line
from orchestrator.engines.docker.inventory import Held
from orchestrator.engines.docker.options import LABEL_OWNER, LABEL_RUN, owner
from orchestrator.errors import ServerFailed


class RunContainers:
    """The containers of one run: made until it is closed, and removed then."""

    def __init__(self, client: docker.DockerClient, run: str) -> None:
        self.run = run
        self.closing = threading.Event()
        self._client = client
        self._making = threading.Lock()

    def create(self, image: str, options: Mapping[str, Any]) -> Container:
        """A container that does not run yet. Raises ServerFailed once the run is closing."""
        with self._making:
            if self.closing.is_set():
                raise ServerFailed("the run was interrupted")
            return self._client.containers.create(image, **options)

    def close(self) -> None:
        """Remove all of them: what is being made now is there to be removed, and nothing is made after it."""
        self.closing.set()
        with self._making:
            remove_containers(self._client, self.run, owner())


def remove_containers(client: docker.DockerClient, run: str, owner: str = "") -> int:
    """Remove the containers of a run, running ones too, of one owner alone where it is given; how many there were."""
    containers = list(_ours(client, run, owner))
    for container in containers:
        remove(container)
    return len(containers)


def remove_images(client: docker.DockerClient, images: Iterable[Held]) -> tuple[int, tuple[str, ...]]:
    """Remove the names of these images, and what has no name once nothing is built on it.

    Returns how many went, and why others stayed: a container uses them, or an image that is not ours is built on them.
    """
    removed, kept = 0, []
    for image in sorted(images, key=lambda image: (image.kind == "standin", not image.references)):
        try:
            for name in image.references or (image.id,):
                client.images.remove(name)
            removed += 1
        except ImageNotFound:  # it went with one that was built on it
            removed += 1
        except APIError as error:
            kept.append(f"{(image.references or (image.id,))[0]}: {first_line(error)}")
    return removed, tuple(kept)


def _ours(client: docker.DockerClient, run: str, owner: str) -> Iterator[Container]:
    labels = [f"{LABEL_RUN}={run}", *([f"{LABEL_OWNER}={owner}"] if owner else [])]
    yield from client.containers.list(all=True, filters={"label": labels})


def remove(container: Container) -> None:
    with contextlib.suppress(*ENGINE_ERRORS):
        container.remove(force=True, v=True)
