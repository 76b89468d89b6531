"""Run a slice: in this process, or in several."""

from __future__ import annotations

from loadgen import slice as one_process
from loadgen.spec import Json, LoadSpec


def load(spec: LoadSpec, begin: int | None = None) -> Json:
    """The LoadResult of a spec. Raises SpecError or EngineError."""
    return one_process.run(spec, begin)
