"""The install probe through the whole pipeline, on the memory engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.engines.memory import Behaviour, MemoryEngine
from orchestrator.evidence.model import Record, RunFile
from orchestrator.matrix.expand import expand
from orchestrator.pipeline import Order, run
from tests.unit.probes.conftest import MATRIX

Runner = Callable[..., tuple[RunFile, dict[str, Record]]]
ONLY = ("waitress*slim·wheel*",)


@pytest.fixture
def installed(run_smoke: Runner) -> Callable[[Behaviour], Record]:
    def go(behaviour: Behaviour) -> Record:
        behaviours = {"waitress": behaviour, "waitress/threads": behaviour}
        _, records = run_smoke(behaviours, suite="installs", only=ONLY)
        assert list(records) == ["waitress"]  # no baseline beside it: there is no ratio
        return records["waitress"]

    return go


def test_what_installs_is_started(installed: Callable[[Behaviour], Record]) -> None:
    record = installed(Behaviour())
    assert (record.probe, record.outcome, record.baseline, record.rounds) == ("install", "measured", False, [])
    assert record.install is not None
    assert (record.install.outcome, record.install.serves, record.install.ready_s) == ("pure", True, 0.1)
    assert [package.name for package in record.install.packages] == ["waitress"]


def test_a_failed_install_is_on_record_with_its_reason_and_is_not_started(
    installed: Callable[[Behaviour], Record],
) -> None:
    record = installed(Behaviour(install_error="ev.h: No such file", start_error="must not be tried"))
    assert record.outcome == "not_installed"
    assert record.reason is not None and "ev.h" in record.reason.line
    assert record.install is not None and record.install.error is not None
    assert (record.install.outcome, record.install.error.line) == ("failed", "ev.h: No such file")
    assert record.install.serves is None


def test_what_installs_may_not_serve(installed: Callable[[Behaviour], Record]) -> None:
    record = installed(Behaviour(start_error="libuv.so.1: cannot open shared object file"))
    assert record.install is not None
    assert (record.install.serves, record.install.why_not) == (False, "libuv.so.1: cannot open shared object file")


def test_what_installs_may_answer_its_workload_wrongly(tmp_path: Path) -> None:
    suite = MATRIX.suites["installs"]
    axes = suite.axes.model_copy(update={"workload": ("bytes-500",)})
    matrix = MATRIX.model_copy(
        update={"suites": {"installs": suite.model_copy(update={"axes": axes, "include": (), "exclude": ()})}}
    )
    engine = MemoryEngine({"waitress/threads": Behaviour(answers={"/bytes/500": (200, b"x" * 499)})})
    order = Order(matrix, expand(matrix, "installs", only=ONLY), tmp_path, 1)
    (record,) = run(order, engine, lambda _: None)[1]
    assert record.install is not None
    assert not record.install.serves
    assert record.install.why_not is not None and "499" in record.install.why_not


def test_an_image_that_could_not_be_made_says_nothing_about_the_server(
    installed: Callable[[Behaviour], Record],
) -> None:
    record = installed(Behaviour(build_error="the package index cannot be reached"))
    assert (record.outcome, record.install) == ("not_built", None)
    assert record.reason is not None and record.reason.line == "the package index cannot be reached"
