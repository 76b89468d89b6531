"""Ranks: what no drawing of intervals may break."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_sample import run_file
from report_strategies import COMPARISONS

from orchestrator.evidence.model import Record
from orchestrator.figures import Estimate
from orchestrator.report.order import Rank, Span, above, groups, ranks, span
from orchestrator.report.table import tables

SPANS = st.lists(
    st.tuples(st.floats(0, 1e6), st.floats(0, 1e6) | st.just(math.inf)).map(lambda pair: Span(min(pair), max(pair))),
    max_size=8,
)


VALUES = st.lists(
    st.tuples(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6), st.sampled_from(["", "bound", "unknown"])),
    max_size=8,
)


def placed(drawn: list[tuple[float, float, float, str]]) -> list[Span]:
    """The spans of rows in the order of their values; an interval may miss its value, as a bootstrap's can."""
    found = []
    for low, value, high, kind in sorted(drawn, key=lambda one: -one[1]):
        ends = (None, None) if kind == "unknown" else (min(low, high), max(low, high))
        found.append(span(Estimate(value=value, low=ends[0], high=ends[1]), bound=kind == "bound"))
    return found


def test_ranks_of_three_rows_of_which_two_are_unresolved() -> None:
    spans = [Span(9, 10), Span(4, 6), Span(5, 7)]
    assert [str(rank) for rank in ranks(spans)] == ["1", "2–3", "2–3"]
    assert groups(spans) == [[0], [1, 2]]


def test_unresolved_is_not_handed_on_from_neighbour_to_neighbour() -> None:
    spans = [Span(8, 10), Span(5, 8), Span(3, 6), Span(1, 3)]
    assert groups(spans) == [[0, 1], [1, 2], [2, 3]]
    assert [str(rank) for rank in ranks(spans)] == ["1–2", "1–3", "2–4", "3–4"]


def test_an_unknown_interval_leaves_every_order_open() -> None:
    unknown = span(Estimate(value=5, low=None, high=None), bound=False)
    assert ranks([Span(9, 10), unknown]) == [Rank(1, 2), Rank(1, 2)]


@given(VALUES)
def test_the_place_of_a_row_lies_within_its_rank(drawn: list[tuple[float, float, float, str]]) -> None:
    for place, rank in enumerate(ranks(placed(drawn)), start=1):
        assert rank.first <= place <= rank.last


@given(SPANS)
def test_a_row_that_lies_wholly_above_another_ranks_before_it_at_both_ends(spans: list[Span]) -> None:
    found = ranks(spans)
    for one, rank in zip(spans, found, strict=True):
        for other, other_rank in zip(spans, found, strict=True):
            if above(one, other):
                assert rank.first < other_rank.first
                assert rank.last < other_rank.last


@given(SPANS)
def test_a_rank_is_one_place_exactly_where_every_order_is_resolved(spans: list[Span]) -> None:
    for at, rank in enumerate(ranks(spans)):
        others = [other for place, other in enumerate(spans) if place != at]
        resolved = all(above(spans[at], other) or above(other, spans[at]) for other in others)
        assert (rank.first == rank.last) == resolved


@given(SPANS)
def test_two_rows_share_a_group_exactly_where_they_are_unresolved(spans: list[Span]) -> None:
    found = groups(spans)
    assert {at for group in found for at in group} == set(range(len(spans)))
    for one in range(len(spans)):
        for other in range(one):
            resolved = above(spans[one], spans[other]) or above(spans[other], spans[one])
            assert any({one, other} <= {*group} for group in found) != resolved


@given(SPANS)
def test_a_row_without_an_upper_end_is_never_outranked(spans: list[Span]) -> None:
    assert all(rank.first == 1 for one, rank in zip(spans, ranks(spans), strict=True) if one.high == math.inf)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(COMPARISONS)
def test_rows_stand_by_the_figure_that_is_printed_first(records: list[Record]) -> None:
    (table,) = tables(run_file(records), records)
    first = {"requests/s": "rps", "× baseline": "ratio"}[table.columns[2]]
    ranked = [row for row in table.rows if row.rank]
    values = [getattr(row.summary, first).value for row in ranked]
    assert values == sorted(values, reverse=True)
    assert all((row.rank or 0) <= place <= (row.rank_last or 0) for place, row in enumerate(ranked, start=1))
    assert "≈" not in " ".join(table.conclusions)
    assert not table.rows or first == "rps" or "× baseline" in table.note


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
