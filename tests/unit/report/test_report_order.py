"""Ranks: what no drawing of intervals may break."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_sample import run_file
from report_strategies import COMPARISONS

from orchestrator.records.model import Estimate, Record
from orchestrator.report.order import Rank, Span, above, chains, ranks, span
from orchestrator.report.table import tables

SPANS = st.lists(
    st.tuples(st.floats(0, 1e6), st.floats(0, 1e6) | st.just(math.inf)).map(lambda pair: Span(min(pair), max(pair))),
    max_size=8,
)


def test_ranks_of_three_rows_with_one_tie() -> None:
    spans = [Span(9, 10), Span(4, 6), Span(5, 7)]
    assert ranks(spans) == [Rank(1, False), Rank(2, True), Rank(2, True)]
    assert chains(spans) == [[1, 2]]


def test_an_unknown_interval_leaves_every_order_open() -> None:
    unknown = span(Estimate(value=5, low=None, high=None), bound=False)
    assert ranks([Span(9, 10), unknown]) == [Rank(1, True), Rank(1, True)]


@given(SPANS)
def test_no_row_that_lies_wholly_above_another_has_a_worse_rank(spans: list[Span]) -> None:
    found = ranks(spans)
    for one, rank in zip(spans, found, strict=True):
        for other, other_rank in zip(spans, found, strict=True):
            if above(one, other):
                assert rank.number < other_rank.number


@given(SPANS)
def test_a_rank_is_tied_exactly_where_some_order_is_open(spans: list[Span]) -> None:
    for at, rank in enumerate(ranks(spans)):
        others = [other for place, other in enumerate(spans) if place != at]
        assert rank.tied == any(not above(spans[at], other) and not above(other, spans[at]) for other in others)


@given(SPANS)
def test_a_row_without_an_upper_end_is_never_outranked(spans: list[Span]) -> None:
    assert all(rank.number == 1 for one, rank in zip(spans, ranks(spans), strict=True) if one.high == math.inf)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(COMPARISONS)
def test_tables_hold_every_record_once_and_rank_no_doubtful_one(records: list[Record]) -> None:
    (table,) = tables(run_file(records), records)
    assert sorted([row.id for row in table.rows] + [missing.id for missing in table.missing]) == sorted(
        record.id for record in records
    )
    by_id = {record.id: record for record in records}
    for row in table.rows:
        effects = {verdict.effect for verdict in by_id[row.id].verdicts}
        assert (row.rank is None) == bool(effects & {"void", "unranked"})
        assert row.rank == 1 or not (row.bound and row.rank)
        assert ("void" in effects) == (row.texts[2] == "—")
        assert row.texts[2].startswith("≥") == (effects >= {"bound"} and "void" not in effects)
