"""The images that a Docker Engine has or can get: what choosing a base needs of it (`bases.ImageStore`)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from functools import partial
from typing import IO

import docker
from docker.errors import ImageNotFound

from orchestrator.engines.docker.bases import MUSL
from orchestrator.engines.docker.builder import Builder
from orchestrator.engines.docker.client import ENGINE_ERRORS, first_line, readable_credentials, told_as_build_failed
from orchestrator.images.context import Context


class Store:
    """Finds, pulls, imports and builds images by reference."""

    def __init__(self, client: docker.DockerClient, builder: Builder) -> None:
        self._client = client
        self._builder = builder

    def digest(self, reference: str) -> str | None:
        """None where the image is not here."""
        try:
            return str(self._client.images.get(reference).id)
        except ImageNotFound:
            return None

    def pull(self, reference: str, silence_s: float) -> str:
        """Nothing where it worked, else the reason in one line: also where no word came for `silence_s` seconds."""
        told: queue.Queue[tuple[str, str]] = queue.Queue()
        threading.Thread(target=self._pull, args=(reference, told), daemon=True).start()
        while True:
            try:
                kind, text = told.get(timeout=silence_s)
            except queue.Empty:
                return f"no answer within {silence_s:.0f} s"
            if kind != "progress":
                return text

    def _pull(self, reference: str, told: queue.Queue[tuple[str, str]]) -> None:
        repository, _, tag = reference.rpartition(":")
        try:
            with readable_credentials():
                lines = self._client.api.pull(repository, tag, stream=True, decode=True)
            for line in lines:
                told.put(("failed", str(line["error"])) if "error" in line else ("progress", ""))
            told.put(("done", ""))
        except ENGINE_ERRORS as error:
            told.put(("failed", first_line(error)))

    def import_rootfs(self, tar: IO[bytes], reference: str, labels: Mapping[str, str]) -> None:
        repository, _, tag = reference.rpartition(":")
        changes = [f'LABEL "{name}"="{text}"' for name, text in labels.items()]
        chunks = iter(partial(tar.read, 1 << 20), b"")  # the SDK declares chunks, and sends them for an iterator only
        with told_as_build_failed(reference):
            self._client.api.import_image_from_stream(chunks, repository=repository, tag=tag, changes=changes)

    def build_standin(
        self, context: Context, args: Mapping[str, str], reference: str, labels: Mapping[str, str], target: str
    ) -> None:
        self._builder.build(context, MUSL, reference, args, target=target, labels=labels)
