"""Ranks out of intervals: pure arithmetic.

A rank says only what the intervals hold up: the places that a row may have, from 1 + the number of rows that lie wholly
above it to all rows less those that lie wholly below it. Rows stand in the order of their values, so that the place at
which a row stands is always one of those. "Not resolved" is no equality: two rows may each overlap a third and still be
resolved. Groups in which every pair is unresolved say which rows are. A lower bound has no upper end, so nothing ever
lies above it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.figures import Estimate


@dataclass(frozen=True)
class Span:
    """Where a row's true value may lie."""

    low: float
    high: float


@dataclass(frozen=True)
class Rank:
    """The first and the last place that the intervals leave open."""

    first: int
    last: int

    def __str__(self) -> str:
        """5, or 5–8."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


def span(estimate: Estimate, *, bound: bool) -> Span:
    """Without an interval the value may lie anywhere. The value itself always lies inside."""
    if estimate.low is None or estimate.high is None:
        return Span(0.0, math.inf)
    return Span(min(estimate.low, estimate.value), math.inf if bound else max(estimate.high, estimate.value))


def above(one: Span, other: Span) -> bool:
    """Whether `one` lies wholly above `other`."""
    return one.low > other.high


def ranks(spans: Sequence[Span]) -> list[Rank]:
    """One rank per span, in their order."""
    return [_rank(own, spans) for own in spans]


def groups(spans: Sequence[Span]) -> list[list[int]]:
    """The largest sets of spans in which no pair is resolved, the highest first, each in the order given.

    Two spans are resolved exactly where no group holds both: intervals that overlap in pairs have a point in common,
    and one such point is the greatest of their low ends.
    """
    points = sorted({span.low for span in spans}, reverse=True)
    sets = [[at for at, one in enumerate(spans) if one.low <= point <= one.high] for point in points]
    return [one for one in sets if not any(set(one) < set(other) for other in sets)]


def _rank(own: Span, spans: Sequence[Span]) -> Rank:
    better = sum(above(other, own) for other in spans)
    worse = sum(above(own, other) for other in spans)
    return Rank(1 + better, len(spans) - worse)
