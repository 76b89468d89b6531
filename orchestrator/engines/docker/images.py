"""Server images and the load generator's: found by the digest of all that decides them, or built."""

from __future__ import annotations

import io
import json
import tarfile
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import docker
from docker.errors import APIError

from orchestrator.engines.docker.bases import find_base
from orchestrator.engines.docker.builder import Builder
from orchestrator.engines.docker.client import first_line, told_as_build_failed
from orchestrator.engines.docker.housekeeping import RunContainers, remove
from orchestrator.engines.docker.options import labels
from orchestrator.engines.docker.store import Store
from orchestrator.engines.protocol import Say
from orchestrator.errors import BuildFailed
from orchestrator.images.context import Context, loadgen_context, server_context
from orchestrator.images.plan import LOADGEN, Base, BaseFacts, BuiltImage, ImageSpec, unfinished

_INSTALL_REPORT = "/opt/venv/install.json"
REPOSITORY = "appserver-matrix"


class Images:
    """The images of one run. Builds side by side wait for what they share."""

    def __init__(self, client: docker.DockerClient, store: Store, builder: Builder, containers: RunContainers) -> None:
        self._client = client
        self._store = store
        self._builder = builder
        self._containers = containers
        self._locks: dict[object, threading.Lock] = {}
        self._locks_lock = threading.Lock()
        self._bases: dict[Base, BaseFacts] = {}

    def build(self, spec: ImageSpec, say: Say) -> BuiltImage:
        """A server's image, failed installs included. Raises BuildFailed, EnvironmentProblem."""
        with told_as_build_failed(spec.key.id):
            return self._found_or_built(spec, say)

    def _found_or_built(self, spec: ImageSpec, say: Say) -> BuiltImage:
        base, context, args = self._base(spec.base, say), server_context(spec.dockerfile), spec.build_args()
        bases = {"BASE": base}
        if spec.build_base:
            bases["BUILD_BASE"] = build_base = self._base(spec.build_base, say)
            base = replace(base, note=f"{base.note}; servers are built on {build_base.reference}")
        digest = context.digest(args, *(used.digest for used in bases.values()))
        tag = f"{spec.key.flavour}-{spec.key.mode}-py{spec.key.python}-{digest}"
        reference = f"{REPOSITORY}/{spec.key.image}:{tag}"
        report = self._report(reference) if self._store.digest(reference) else None
        if report is None or unfinished(report):
            self._shared(spec, base, context, say)
            say(f"building {spec.key.id}")
            wanted = args | {name: used.reference for name, used in bases.items()}
            report = self._installed(spec, context, reference, wanted, fresh=report is not None)
        return self._made(spec, reference, base, report)

    def _installed(
        self, spec: ImageSpec, context: Context, reference: str, args: Mapping[str, str], *, fresh: bool
    ) -> Mapping[str, Any]:
        """Build an image and read its report. `fresh`: with an install of its own, none that the engine's cache holds.

        That may be one which ended at its time limit, and it may be there under another image's name.
        """
        began = time.monotonic()
        wanted = {**args, "ATTEMPT": str(time.time_ns())} if fresh else args
        self._builder.build(context, spec.dockerfile, reference, wanted, target=spec.target)
        report = self._report(reference)
        if not fresh and unfinished(report) and time.monotonic() - began < sum(report["seconds"].values()):
            return self._installed(spec, context, reference, args, fresh=True)
        return report

    def loadgen(self, say: Say) -> BuiltImage:
        """The load generator's image. Raises BuildFailed, EnvironmentProblem."""
        with told_as_build_failed("the load generator"):
            base = self._base(LOADGEN.base, say)
            context = loadgen_context()
            reference = f"{REPOSITORY}/loadgen:{context.digest(base.digest)}"
            if self._store.digest(reference) is None:
                say("building the load generator")
                args = {"BASE": base.reference}
                self._builder.build(context, LOADGEN.dockerfile, reference, args, prefix="images/", target="loadgen")
            return self._made(LOADGEN, reference, base, {"outcome": "pure"})

    def _shared(self, spec: ImageSpec, base: BaseFacts, context: Context, say: Say) -> None:
        """Build what all images on a base share before any of them: builds side by side would each make their own."""
        with self._lock(("shared", base.digest)):
            reference = f"{REPOSITORY}/shared:{context.digest(spec.dockerfile, base.digest)}"
            if self._store.digest(reference) is None:
                say(f"building the frameworks for {spec.key.flavour}")
                self._builder.build(context, spec.dockerfile, reference, {"BASE": base.reference}, target="shared")

    def _report(self, reference: str) -> Mapping[str, Any]:
        """The install report that the image carries."""
        options = {"command": ["true"], "labels": labels(self._containers.run, "report")}
        container = self._containers.create(reference, options)
        try:
            chunks, _ = container.get_archive(_INSTALL_REPORT)
            with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
                member = archive.extractfile(archive.getmembers()[0])
                report = json.loads(member.read() if member else b"{}")
        except (APIError, tarfile.TarError, ValueError) as error:
            raise BuildFailed(f"{reference} carries no install report: {first_line(error)}") from error
        finally:
            remove(container)
        return dict(report)

    def _base(self, base: Base, say: Say) -> BaseFacts:
        with self._lock(base):
            if base not in self._bases:
                self._bases[base] = find_base(self._store, base, say)
            return self._bases[base]

    def _lock(self, key: object) -> threading.Lock:
        with self._locks_lock:
            return self._locks.setdefault(key, threading.Lock())

    def _made(self, spec: ImageSpec, reference: str, base: BaseFacts, install: Mapping[str, Any]) -> BuiltImage:
        image = self._client.images.get(reference)
        return BuiltImage(spec, reference, str(image.id), base, str(image.attrs.get("Architecture", "")), install)
