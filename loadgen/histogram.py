"""Latencies as an HDR histogram in microseconds: mergeable, three significant figures, 1 us to 60 s."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping

from hdrh.histogram import HdrHistogram
from msgspec.structs import replace

from loadgen.contract import DIGITS, HIGHEST_US, LOWEST_US, Latency

PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99)
SAMPLES_BEYOND = 10  # a percentile is given only where at least so many samples lie beyond it


def describe(times_ns: array[int]) -> Latency:
    """The document of a set of times: histogram, exact count, min, mean, max, supported percentiles."""
    document = of_counts(Counter(time // 1000 for time in times_ns))
    if not times_ns:
        return document
    mean = sum(times_ns) / len(times_ns) / 1000
    return replace(document, min=min(times_ns) / 1000, mean=mean, max=max(times_ns) / 1000)


def of_counts(counts: Mapping[int, int]) -> Latency:
    """The same of whole microseconds, each with its count."""
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    for us, times in counts.items():
        histogram.record_value(min(max(us, LOWEST_US), HIGHEST_US), times)
    count = sum(counts.values())
    if not count:
        return _document(histogram, 0, None, None, None)
    mean = sum(us * times for us, times in counts.items()) / count
    return _document(histogram, count, min(counts), mean, max(counts))


def merge(documents: Iterable[Latency]) -> Latency:
    """The document of all the times of several; the histograms add up exactly."""
    parts = [document for document in documents if document.count]
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    for part in parts:
        histogram.decode_and_add(part.histogram)
    count = sum(part.count for part in parts)
    low = min((part.min for part in parts if part.min is not None), default=None)
    high = max((part.max for part in parts if part.max is not None), default=None)
    sums = [part.count * part.mean for part in parts if part.mean is not None]
    return _document(histogram, count, low, sum(sums) / count if sums else None, high)


def _document(
    histogram: HdrHistogram, count: int, low: float | None, mean: float | None, high: float | None
) -> Latency:
    supported = [p for p in PERCENTILES if count * (100 - p) / 100 >= SAMPLES_BEYOND]
    return Latency(
        histogram=histogram.encode().decode("ascii"),
        count=count,
        min=low,
        mean=mean,
        max=high,
        percentiles={f"{p:g}": histogram.get_value_at_percentile(p) for p in supported},
    )
