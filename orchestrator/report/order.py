"""Ranks out of intervals: pure arithmetic.

A rank says only what the intervals hold up: 1 + the number of rows that lie wholly above. Where two intervals overlap
the order is open. A lower bound has no upper end, so nothing ever lies above it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from orchestrator.records.model import Estimate


@dataclass(frozen=True)
class Span:
    """Where a row's true value may lie."""

    low: float
    high: float


@dataclass(frozen=True)
class Rank:
    """`tied`: the order against at least one other row is unresolved."""

    number: int
    tied: bool


def span(estimate: Estimate, *, bound: bool) -> Span:
    """Without an interval the value may lie anywhere."""
    if estimate.low is None or estimate.high is None:
        return Span(0.0, math.inf)
    return Span(estimate.low, math.inf if bound else estimate.high)


def above(one: Span, other: Span) -> bool:
    """Whether `one` lies wholly above `other`."""
    return one.low > other.high


def ranks(spans: Sequence[Span]) -> list[Rank]:
    """One rank per span, in their order."""
    return [_rank(at, spans) for at in range(len(spans))]


def chains(spans: Sequence[Span]) -> list[list[int]]:
    """Runs of neighbours, two or more, in which no row is resolved against the next."""
    found: list[list[int]] = []
    for at, next_at in pairwise(range(len(spans))):
        if above(spans[at], spans[next_at]):
            continue
        if found and found[-1][-1] == at:
            found[-1].append(next_at)
        else:
            found.append([at, next_at])
    return found


def _rank(at: int, spans: Sequence[Span]) -> Rank:
    own, others = spans[at], [*spans[:at], *spans[at + 1 :]]
    better = sum(above(other, own) for other in others)
    worse = sum(above(own, other) for other in others)
    return Rank(1 + better, better + worse < len(others))
