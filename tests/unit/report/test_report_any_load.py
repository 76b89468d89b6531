"""Any document that the load generator's schema allows is judged, stored and shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from report_loads import documents
from report_sample import BASELINE, PLACEMENT, assembled, cell, measured, run_file
from test_report_renderings import RENDERINGS

from loadgen.contract import LoadResult
from orchestrator.evidence import form
from orchestrator.evidence.model import Record
from orchestrator.judge import stats
from orchestrator.judge.assemble import Judging, judged
from orchestrator.probes.fingerprint import Fingerprint
from orchestrator.probes.results import Check, Failure, Round, Slice
from orchestrator.report.document import document

some = settings(
    max_examples=25,
    deadline=None,
    phases=[phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)],  # minutes, of so much data
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
JUDGING = Judging(PLACEMENT, "x86_64")
CHECKS = st.builds(
    Check, st.floats(0, 60), st.just(Fingerprint(python="3.13.5")), st.just(()), st.booleans(), st.booleans(),
    st.none() | st.integers(0, 10**9), st.none() | st.integers(0, 10**9),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "RESAMPLES", 50)
    monkeypatch.setattr(stats, "REDRAWN", 50)


def slices(loads: Sequence[LoadResult], rate: float | None) -> tuple[Slice, ...]:
    return tuple(Slice(at, "2026-01-01T00:00:00", load, 0.0, rate) for at, load in enumerate(loads))


@cache
@st.composite
def some_rounds(draw: st.DrawFn, rate: float | None = None, most: float = 1e12) -> tuple[Round, ...]:
    """Up to three rounds of up to three slices; a round may have failed before its end or its start."""
    made = []
    for number in range(1, draw(st.integers(1, 3)) + 1):
        loads = draw(st.lists(documents(most), max_size=3))
        failure = draw(st.none() | st.just(Failure("load", "the load generator went away")))
        check = draw(CHECKS) if loads else draw(st.none() | CHECKS)
        made.append(Round(number, check, slices(loads, rate), failure))
    return tuple(made)


@st.composite
def some_runs(draw: st.DrawFn, most: float = 1e12) -> list[Record]:
    """A reference, a cell that refers to it, the open loop of that, and one without any round."""
    own = cell("waitress/threads", "flask", threads=4)
    items = [
        measured(cell(BASELINE, "starlette"), draw(some_rounds(most=most))),
        measured(own, draw(some_rounds(most=most))),
        measured(own.only(open=50), draw(some_rounds(rate=draw(st.sampled_from([1.0, 500.0])), most=most))),
        measured(cell("cheroot/threads", "flask", threads=4), ()),
    ]
    return assembled(items)


@given(documents())
@some
def test_what_is_drawn_is_what_the_contract_allows(load: LoadResult) -> None:
    assert msgspec.convert(msgspec.to_builtins(load), LoadResult) == load


@given(some_runs())
@some
def test_any_load_that_the_schema_allows_is_judged(made: list[Record]) -> None:
    assert [record.reason for record in made if record.outcome == "not_judged"] == []
    assert [Record.model_validate_json(record.model_dump_json()) for record in made] == made


@given(some_runs())
@some
def test_any_load_that_the_schema_allows_is_read_again_out_of_its_file(made: list[Record]) -> None:
    for record in made:
        file = form.as_text(form.written(record.model_dump(mode="json")))
        assert Record.model_validate(form.read(json.loads(file))) == record


@given(some_runs())
@settings(some, max_examples=5)
def test_any_load_that_the_schema_allows_is_shown_in_every_form(made: list[Record]) -> None:
    run = run_file(made)
    assert document(run, made).failures == ()
    for name, rendering in RENDERINGS.items():
        assert rendering(run, made), name


@given(some_runs(most=1e308))
@settings(some, max_examples=10)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_beyond_all_reason_leave_records_that_can_be_read_again(made: list[Record]) -> None:
    for record in made:
        again = Record.model_validate_json(record.model_dump_json())
        assert (again.summary, again.outcome) == (record.summary, record.outcome)
    assert document(run_file(made), made).failures == ()


@given(some_runs())
@settings(some, max_examples=10)
def test_judging_again_gives_the_same(made: list[Record]) -> None:
    again = judged(made, JUDGING)
    assert [record.model_copy(update={"written": ""}) for record in again] == [
        record.model_copy(update={"written": ""}) for record in made
    ]
