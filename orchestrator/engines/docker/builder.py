"""The engine's own builder: one build at a time of each image, followed to its end, and ended when the run ends."""

from __future__ import annotations

import contextlib
import io
import re
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

import docker

from orchestrator.engines.docker.client import ENGINE_ERRORS, readable_credentials, told_as_build_failed
from orchestrator.errors import BuildFailed
from orchestrator.images.context import Context
from orchestrator.images.host import host_settings

POLL_S = 0.05
BUILDS_END_WITHIN_S = 20.0
"""A step that only copies files cannot be ended: an interrupt waits for it."""
_STEP = re.compile(r"---> Running in ([0-9a-f]+)")


class Builder:
    """Builds images until it is closed."""

    def __init__(self, client: docker.DockerClient, closing: threading.Event) -> None:
        self._client = client
        self._closing = closing
        self._steps: dict[str, str] = {}  # by the image that is being built: the container of its present step

    def build(
        self, context: Context, dockerfile: str, reference: str, args: Mapping[str, str], *, prefix: str = "",
        target: str = "", labels: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Build `reference`, with the settings of the host. Raises BuildFailed with the last lines of its output.

        `prefix`: where images/ is in the context; `labels`: beyond those of the Dockerfile.
        """
        host = host_settings()
        extra = {f"{prefix}host/ca.crt": host.ca} if host.ca else {}
        self._steps[reference] = ""
        try:
            with told_as_build_failed(reference):
                with readable_credentials():
                    lines = self._client.api.build(
                        fileobj=io.BytesIO(context.tar(extra)), custom_context=True, dockerfile=dockerfile,
                        tag=reference, buildargs={**host.build_args(), **args},
                        labels=dict(labels or {}), target=target, rm=True, forcerm=True,
                        decode=True, timeout=3600,
                    )  # fmt: skip
                self._follow(lines, reference)
        finally:
            self._steps.pop(reference, None)

    def _follow(self, lines: Iterable[Mapping[str, Any]], reference: str) -> None:
        """Read a build's output to its end. Raises BuildFailed with the last lines where it did not work.

        A build whose client goes away leaves the container of its step behind; one whose step fails does not. So after
        an interrupt each step is ended as it begins, and the build fails by itself.
        """
        tail: list[str] = []
        for line in lines:
            tail = [*tail, *str(line.get("stream", "")).splitlines()][-12:]
            if step := _STEP.search(str(line.get("stream", ""))):
                self._steps[reference] = step[1]
                if self._closing.is_set():
                    self._end_step(reference)
            if "error" in line:
                text = "\n    ".join(part for part in tail if part.strip())
                raise BuildFailed(
                    f"{reference}: {line['error']}\n    {text}", next_step="`matrix doctor` checks the index"
                )

    def _end_step(self, reference: str) -> None:
        with contextlib.suppress(*ENGINE_ERRORS):
            self._client.api.remove_container(self._steps[reference], force=True, v=True)

    def close(self) -> None:
        """End what is being built."""
        self._closing.set()
        for reference in list(self._steps):
            self._end_step(reference)
        deadline = time.monotonic() + BUILDS_END_WITHIN_S
        while self._steps and time.monotonic() < deadline:
            time.sleep(POLL_S)
