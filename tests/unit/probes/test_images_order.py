"""Images of a run: the load generator's beside the servers', slow ones first, and an end where nothing can be built."""

from __future__ import annotations

import pytest

from orchestrator.engines.memory import MemoryEngine
from orchestrator.engines.protocol import Say
from orchestrator.errors import BuildFailed, EnvironmentProblem
from orchestrator.images.plan import LOADGEN, ROOT, BuiltImage, ImageSpec, images_of
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.probes import images
from orchestrator.probes.images import build_all

MATRIX = load_matrix(ROOT / "matrix.yaml").matrix
SPECS = images_of(MATRIX, expand(MATRIX, "quick").cells)


class Builds(MemoryEngine):
    """Keeps the order in which images are begun; one build at a time."""

    def __init__(self, trouble: Exception | None = None) -> None:
        super().__init__(why="", cpus=(0, 1))
        self.begun: list[str] = []
        self._trouble = trouble

    def prepare(self, say: Say) -> BuiltImage:
        self.begun.append(LOADGEN.key.id)
        if self._trouble:
            raise self._trouble
        return super().build(LOADGEN, say)

    def build(self, spec: ImageSpec, say: Say) -> BuiltImage:
        self.begun.append(spec.key.id)
        return super().build(spec, say)


@pytest.fixture(autouse=True)
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "BUILDS_AT_ONCE", 1)


def test_what_compiles_is_built_first_and_told_in_the_order_of_the_cells() -> None:
    engine = Builds()
    loadgen, made = build_all(engine, SPECS, lambda _: None)
    assert loadgen.spec is LOADGEN
    assert list(made) == [spec.key for spec in SPECS]
    modes = [("sdist" in begun) for begun in engine.begun[1:]]
    assert modes == sorted(modes, reverse=True) and len(set(modes)) == 2


@pytest.mark.parametrize("trouble", [BuildFailed("no load generator"), EnvironmentProblem("no base")])
def test_without_a_load_generator_no_further_build_is_begun(trouble: Exception) -> None:
    engine = Builds(trouble)
    with pytest.raises(type(trouble), match=str(trouble)):
        build_all(engine, SPECS, lambda _: None)
    assert engine.begun == [LOADGEN.key.id]
