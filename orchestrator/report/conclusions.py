"""What a reader may conclude from a table, and what not, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.figures import Estimate
from orchestrator.layout.text import listed
from orchestrator.report.compared_run import ComparedRun
from orchestrator.report.measures import MEASURES
from orchestrator.report.noise import noise_lines
from orchestrator.report.openloop import open_lines, overloaded
from orchestrator.report.order import Span, above, groups, span
from orchestrator.report.references import line, ratio_lines, reference_warnings
from orchestrator.report.standings import Standing, comparable

RESOLVED = "Two rows that share no group are resolved."


def warnings(compared: ComparedRun, standings: Sequence[Standing]) -> tuple[str, ...]:
    """What concerns every row."""
    closed = [standing for standing in standings if not standing.record.cell.open]
    found = [*reference_warnings(compared, closed)] if closed else []
    if closed and all(standing.span is None or standing.span.low == 0 for standing in closed):
        found.append("No row has an interval that may be ranked: no order is resolved.")
    apps = sorted({standing.record.cell.app for standing in standings})
    if len(apps) > 1:
        found.append(f"Rows differ in the app too ({listed(apps)}): between those, the framework is compared as well.")
    bases = [standing for standing in closed if standing.record.baseline and standing.record.summary]
    reference = next((standing for standing in closed if standing.reference), None)
    if len(bases) > 1 and reference and not compared.run.against:
        found.append(f"{compared.run.baseline} stands in {len(bases)} rows; ratios refer to {reference.name}.")
    return tuple(found)


def conclusions(compared: ComparedRun, standings: Sequence[Standing]) -> tuple[str, ...]:
    """Against what ratios refer to, among each other, by cost, and what is no ground for any conclusion.

    What a row of the run's pivot holds both sides of is told there.
    """
    ranked = [standing for standing in standings if standing.rank]
    outside = [e.name for e in standings if e.outside and e.record.summary and not e.void and not overloaded(e.record)]
    found = (
        *(() if compared.spans else referred(compared, standings)),
        *open_lines(standings),
        *(_by_latency(standings, name) for name in ("p50", "p99")),
        _unresolved(ranked),
        line("Lower bounds, which may be faster than any row above them", *(e.name for e in ranked if e.bound)),
        _by_cpu(ranked),
        line("Printed but outside the order, conclude nothing from them", *outside),
    )
    return tuple(filter(None, found))


def referred(compared: ComparedRun, standings: Sequence[Standing], across: str = "") -> tuple[str, ...]:
    """What the ratios say; of a server to its twin they tell the noise."""
    return noise_lines(standings) if "twin" in compared.run.against else ratio_lines(compared, standings, across)


def _unresolved(ranked: Sequence[Standing]) -> str:
    """The groups of rows in which no pair is resolved: what a range of ranks does not say, namely against whom."""
    found = groups([standing.span for standing in ranked if standing.span])
    told = [listed([ranked[at].name for at in group]) for group in found if len(group) > 1]
    if len(found) == 1 and told:
        return "No order is resolved between any two ranked rows."
    return f"Unresolved, each row against each other of its group: {'; '.join(told)}. {RESOLVED}" if told else ""


def _by_cpu(ranked: Sequence[Standing]) -> str:
    """The order of lower bounds, and of those that they may be ahead of, by what the load generator does not limit."""
    bounds = [standing.span for standing in ranked if standing.bound and standing.span]
    doubtful = [e for e in ranked if e.span and any(e.bound or not above(bound, e.span) for bound in bounds)]
    dear = {standing.record.id: estimate for standing, estimate in zip(ranked, _cpu(ranked), strict=True) if estimate}
    told = _rising([(standing.name, dear[standing.record.id]) for standing in doubtful if standing.record.id in dear])
    return f"By CPU per request, which the load generator does not limit{told}" if told else ""


def _by_latency(standings: Sequence[Standing], name: str) -> str:
    """The order of open loops, as far as the intervals of this percentile hold it up."""
    sound = [(e.name, e.record.summary) for e in standings if e.record.cell.open and e.record.summary and not e.outside]
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


def _cpu(standings: Sequence[Standing]) -> list[Estimate | None]:
    """CPU per request. Where all have it, against the same row's: what a round does to both cancels in that."""
    summaries = [standing.record.summary for standing in standings]
    ratios = [_inverse(summary.cpu_ratio) if summary and summary.cpu_ratio else None for summary in summaries]
    if comparable(standings) and all(ratios):
        return ratios
    return [summary.cpu_us_per_request if summary else None for summary in summaries]


def _inverse(ratio: Estimate) -> Estimate:
    """From requests per CPU to CPU per request."""
    low, high = (None if end is None else 1 / end for end in (ratio.high, ratio.low))
    return Estimate(value=1 / ratio.value, low=low, high=high)
