"""Every image that a run needs, built side by side; the failure of one server's is its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from orchestrator.engines.protocol import Engine
from orchestrator.errors import BuildFailed, MatrixError
from orchestrator.images.plan import LOADGEN, BuiltImage, ImageSpec
from orchestrator.matrix.cell import ImageKey
from orchestrator.probes.events import Emit, ImageReady, Told
from orchestrator.probes.parallel import parallel
from orchestrator.probes.results import Failure

BUILDS_AT_ONCE = 3


def build_all(
    engine: Engine, specs: Sequence[ImageSpec], emit: Emit
) -> tuple[BuiltImage, Mapping[ImageKey, BuiltImage | Failure]]:
    """The load generator's image, and by key that of each spec; a Failure where none could be made.

    An image whose install failed is an image: it says why. Where the load generator's cannot be made, or no base is to
    be had, no further build is begun, and that error is raised: BuildFailed, EnvironmentProblem.
    """
    finished: list[ImageKey] = []
    given_up: list[MatrixError] = []

    def build(spec: ImageSpec) -> BuiltImage | Failure:
        if spec is LOADGEN:
            return engine.prepare(lambda text: emit(Told(text)))
        started = time.monotonic()
        result = _build(engine, spec, emit)
        finished.append(spec.key)
        failure = failure_of(result)
        text = failure.reason if failure else f"{time.monotonic() - started:.1f} s"
        emit(ImageReady(spec.key.id, failure is None, text, len(finished), len(specs)))
        return result

    def build_unless_given_up(spec: ImageSpec) -> BuiltImage | Failure:
        if given_up:
            raise given_up[0]
        try:
            return build(spec)
        except MatrixError as error:
            given_up.append(error)
            raise

    in_order = [LOADGEN, *_slow_first(specs)]
    made = dict(
        zip((spec.key for spec in in_order), parallel(build_unless_given_up, in_order, BUILDS_AT_ONCE), strict=True)
    )
    loadgen = made[LOADGEN.key]
    assert isinstance(loadgen, BuiltImage)
    return loadgen, {spec.key: made[spec.key] for spec in specs}


def _slow_first(specs: Sequence[ImageSpec]) -> list[ImageSpec]:
    """What compiles goes first: at the end the others would wait for it."""
    return sorted(specs, key=lambda spec: spec.key.mode != "sdist")


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
