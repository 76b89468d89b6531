"""What a reader may conclude from a table, and what not, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.figures import Estimate
from orchestrator.layout.text import listed
from orchestrator.report.entries import Entry, comparable
from orchestrator.report.measures import MEASURES
from orchestrator.report.noise import noise_lines
from orchestrator.report.openloop import open_lines, overloaded
from orchestrator.report.order import Span, above, groups, span
from orchestrator.report.reading import Reading
from orchestrator.report.references import line, ratio_lines, reference_warnings

RESOLVED = "Two rows that share no group are resolved."


def warnings(read: Reading, made: Sequence[Entry]) -> tuple[str, ...]:
    """What concerns every row."""
    closed = [entry for entry in made if not entry.record.cell.open]
    found = [*reference_warnings(read, closed)] if closed else []
    if closed and all(entry.span is None or entry.span.low == 0 for entry in closed):
        found.append("No row has an interval that may be ranked: no order is resolved.")
    apps = sorted({entry.record.cell.app for entry in made})
    if len(apps) > 1:
        found.append(f"Rows differ in the app too ({listed(apps)}): between those, the framework is compared as well.")
    bases = [entry for entry in closed if entry.record.baseline and entry.record.summary]
    reference = next((entry for entry in closed if entry.reference), None)
    if len(bases) > 1 and reference and not read.run.against:
        found.append(f"{read.run.baseline} stands in {len(bases)} rows; ratios refer to {reference.name}.")
    return tuple(found)


def conclusions(read: Reading, made: Sequence[Entry]) -> tuple[str, ...]:
    """Against what ratios refer to, among each other, by cost, and what is no ground for any conclusion.

    What a row of the run's pivot holds both sides of is told there.
    """
    ranked = [entry for entry in made if entry.rank]
    outside = [e.name for e in made if e.outside and e.record.summary and not e.void and not overloaded(e.record)]
    found = (
        *(() if read.spans else referred(read, made)),
        *open_lines(made),
        *(_by_latency(made, name) for name in ("p50", "p99")),
        _unresolved(ranked),
        line("Lower bounds, which may be faster than any row above them", *(e.name for e in ranked if e.bound)),
        _by_cpu(ranked),
        line("Printed but outside the order, conclude nothing from them", *outside),
    )
    return tuple(filter(None, found))


def referred(read: Reading, made: Sequence[Entry], across: str = "") -> tuple[str, ...]:
    """What the ratios say; of a server to its twin they tell the noise."""
    return noise_lines(made) if "twin" in read.run.against else ratio_lines(read, made, across)


def _unresolved(ranked: Sequence[Entry]) -> str:
    """The groups of rows in which no pair is resolved: what a range of ranks does not say, namely against whom."""
    found = groups([entry.span for entry in ranked if entry.span])
    told = [listed([ranked[at].name for at in group]) for group in found if len(group) > 1]
    if len(found) == 1 and told:
        return "No order is resolved between any two ranked rows."
    return f"Unresolved, each row against each other of its group: {'; '.join(told)}. {RESOLVED}" if told else ""


def _by_cpu(ranked: Sequence[Entry]) -> str:
    """The order of lower bounds, and of those that they may be ahead of, by what the load generator does not limit."""
    bounds = [entry.span for entry in ranked if entry.bound and entry.span]
    doubtful = [e for e in ranked if e.span and any(e.bound or not above(bound, e.span) for bound in bounds)]
    dear = {entry.record.id: estimate for entry, estimate in zip(ranked, _cpu(ranked), strict=True) if estimate}
    told = _rising([(entry.name, dear[entry.record.id]) for entry in doubtful if entry.record.id in dear])
    return f"By CPU per request, which the load generator does not limit{told}" if told else ""


def _by_latency(made: Sequence[Entry], name: str) -> str:
    """The order of open loops, as far as the intervals of this percentile hold it up."""
    sound = [(e.name, e.record.summary) for e in made if e.record.cell.open and e.record.summary and not e.outside]
    found = [(row, estimate) for row, summary in sound if (estimate := MEASURES[name].estimate(summary))]
    told = _rising([(row, estimate) for row, estimate in found if estimate.low is not None])
    return f"By {name}{told}" if told else ""


def _rising(found: Sequence[tuple[str, Estimate]]) -> str:
    """What follows "By p50", the lowest first: a < b, or the groups in which no pair is resolved. Empty for one row."""
    order = sorted(found, key=lambda pair: pair[1].value)
    sets = groups([_span(estimate) for _, estimate in order])[::-1]
    told = [listed([order[at][0] for at in group]) for group in sets]
    if len(told) < 2:
        return ": no order is resolved." if len(order) > 1 else ""
    if len(told) == len(order) == sum(map(len, sets)):
        return f": {' < '.join(told)}."
    return f", the lowest first, by groups that are unresolved in themselves: {'; '.join(told)}. {RESOLVED}"


def _span(estimate: Estimate) -> Span:
    return span(estimate, bound=False)


def _cpu(made: Sequence[Entry]) -> list[Estimate | None]:
    """CPU per request. Where all have it, against the same row's: what a round does to both cancels in that."""
    summaries = [entry.record.summary for entry in made]
    ratios = [_inverse(summary.cpu_ratio) if summary and summary.cpu_ratio else None for summary in summaries]
    if comparable(made) and all(ratios):
        return ratios
    return [summary.cpu_us_per_request if summary else None for summary in summaries]


def _inverse(ratio: Estimate) -> Estimate:
    """From requests per CPU to CPU per request."""
    low, high = (None if end is None else 1 / end for end in (ratio.high, ratio.low))
    return Estimate(value=1 / ratio.value, low=low, high=high)
