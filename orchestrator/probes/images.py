"""Every image that the cells need, built side by side; the failure of one is its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from orchestrator.engines.protocol import Engine
from orchestrator.errors import BuildFailed
from orchestrator.images.plan import BuiltImage, ImageSpec
from orchestrator.matrix.cell import ImageKey
from orchestrator.probes.events import Emit, ImageReady, Told
from orchestrator.probes.parallel import parallel
from orchestrator.probes.results import Failure

BUILDS_AT_ONCE = 3


def build_all(engine: Engine, specs: Sequence[ImageSpec], emit: Emit) -> Mapping[ImageKey, BuiltImage | Failure]:
    """Image by key; a Failure where none could be made. An image whose install failed is an image: it says why."""
    finished: list[ImageKey] = []

    def build(spec: ImageSpec) -> BuiltImage | Failure:
        started = time.monotonic()
        result = _build(engine, spec, emit)
        finished.append(spec.key)
        failure = failure_of(result)
        text = failure.reason if failure else f"{time.monotonic() - started:.1f} s"
        emit(ImageReady(spec.key.id, failure is None, text, len(finished), len(specs)))
        return result

    return dict(zip((spec.key for spec in specs), parallel(build, specs, BUILDS_AT_ONCE), strict=True))


def _build(engine: Engine, spec: ImageSpec, emit: Emit) -> BuiltImage | Failure:
    try:
        return engine.build(spec, lambda text: emit(Told(text)))
    except BuildFailed as error:
        return Failure("build", str(error).splitlines()[0], str(error))


def failure_of(image: BuiltImage | Failure) -> Failure | None:
    """Why nothing can run in an image: none, or the first meaningful line of a failed install with its kind."""
    if isinstance(image, Failure):
        return image
    if image.installed:
        return None
    error = image.install.get("error") or {}
    return Failure("install", f"{error.get('kind', 'failed')}: {error.get('line', 'no reason found')}")
