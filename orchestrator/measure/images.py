"""Every image that the cells need, built side by side; the failure of one is its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from orchestrator.cells.model import ImageKey
from orchestrator.engines.protocol import Engine
from orchestrator.errors import BuildFailed
from orchestrator.images.plan import BuiltImage, ImageSpec
from orchestrator.measure.events import Emit, ImageReady, Told
from orchestrator.measure.parallel import parallel
from orchestrator.measure.results import Failure

BUILDS_AT_ONCE = 3


def build_all(engine: Engine, specs: Sequence[ImageSpec], emit: Emit) -> Mapping[ImageKey, BuiltImage | Failure]:
    """Image by key. An install that failed is a Failure too: its cells are records without figures."""
    finished: list[ImageKey] = []

    def build(spec: ImageSpec) -> BuiltImage | Failure:
        started = time.monotonic()
        result = _build(engine, spec, emit)
        finished.append(spec.key)
        ok = isinstance(result, BuiltImage)
        text = f"{time.monotonic() - started:.1f} s" if isinstance(result, BuiltImage) else result.reason
        emit(ImageReady(spec.key.id, ok, text, len(finished), len(specs)))
        return result

    return dict(zip((spec.key for spec in specs), parallel(build, specs, BUILDS_AT_ONCE), strict=True))


def _build(engine: Engine, spec: ImageSpec, emit: Emit) -> BuiltImage | Failure:
    try:
        image = engine.build(spec, lambda text: emit(Told(text)))
    except BuildFailed as error:
        return Failure("build", str(error).splitlines()[0], str(error))
    return image if image.installed else install_failure(image)


def install_failure(image: BuiltImage) -> Failure:
    """The first meaningful line of a failed install, with its kind."""
    error = image.install.get("error") or {}
    return Failure("install", f"{error.get('kind', 'failed')}: {error.get('line', 'no reason found')}")
