"""What a reader may conclude from a table, and what not, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.records.model import Estimate
from orchestrator.report.entries import Entry, effects
from orchestrator.report.order import chains
from orchestrator.report.text import listed, short


def warnings(baseline: str, made: Sequence[Entry]) -> tuple[str, ...]:
    """What concerns every row."""
    reference = next((entry for entry in made if entry.reference), None)
    found = [baseline_warning(baseline, reference)]
    if made and all(entry.span is None or entry.span.low == 0 for entry in made):
        found.append("No row has an interval that may be ranked: no order is resolved.")
    apps = sorted({entry.record.cell.app for entry in made})
    if len(apps) > 1:
        found.append(f"Rows differ in the app too ({listed(apps)}): between those, the framework is compared as well.")
    bases = [entry for entry in made if entry.record.baseline and entry.record.summary]
    if len(bases) > 1 and reference:
        found.append(f"{baseline} stands in {len(bases)} rows; ratios refer to {reference.name}.")
    return tuple(filter(None, found))


def conclusions(baseline: str, made: Sequence[Entry]) -> tuple[str, ...]:
    """Against the baseline, among each other, and what is no ground for any conclusion."""
    ranked = [entry for entry in made if entry.rank]
    outside = [entry.name for entry in made if not entry.rank and entry.record.summary and not entry.void]
    found = (
        *_against_baseline(baseline, ranked),
        _unresolved(ranked),
        _line("Lower bounds, which may be faster than any row above them", [e.name for e in ranked if e.bound]),
        _line("Printed but outside the order, conclude nothing from them", outside),
    )
    return tuple(filter(None, found))


def baseline_warning(baseline: str, reference: Entry | None) -> str:
    """What is wrong with the row that ratios refer to; "" where nothing is."""
    if reference is None:
        return f"The baseline {baseline} has no figure here: there are no ratios."
    found = effects(reference.record)
    if "void" in found:
        return f"The figure of the baseline {baseline} is void: no ratio is printed."
    if "unranked" in found:
        return f"The baseline {baseline} is itself outside the order ({reference.marks}): ratios prove nothing."
    if "bound" in found:
        return f"The baseline {baseline} is a lower bound ({reference.marks}): ratios to it are upper bounds."
    return ""


def _against_baseline(baseline: str, ranked: Sequence[Entry]) -> tuple[str, ...]:
    if not any(entry.reference for entry in ranked):
        return ()
    sides: dict[str, list[str]] = {"ahead": [], "behind": [], "open": []}
    for entry in ranked:
        summary = entry.record.summary
        if summary and summary.ratio and not entry.reference:
            sides[side(summary.ratio, summary.ratio_bound)].append(_told(entry, summary.ratio, summary.ratio_bound))
    return (
        _line(f"Resolved ahead of {baseline}", sides["ahead"]),
        _line(f"Resolved behind {baseline}", sides["behind"]),
        _line(f"Not resolved against {baseline}", sides["open"]),
    )


def side(ratio: Estimate, bound: str) -> str:
    """ahead, behind or open: a lower bound can only prove that a row is ahead, an upper bound that it is behind."""
    if ratio.low is None or ratio.high is None or bound == "?":
        return "open"
    if ratio.low > 1 and bound != "<=":
        return "ahead"
    return "behind" if ratio.high < 1 and bound != ">=" else "open"


def _told(entry: Entry, ratio: Estimate, bound: str) -> str:
    sign = {">=": "at least ", "<=": "at most ", "?": "", "": ""}[bound]
    return entry.name if side(ratio, bound) == "open" else f"{entry.name} ({sign}{short(ratio.value)}×)"


def _unresolved(ranked: Sequence[Entry]) -> str:
    spans = [entry.span for entry in ranked if entry.span]
    told = [" ≈ ".join(ranked[at].name for at in chain) for chain in chains(spans)]
    return f"Order unresolved between neighbours: {'; '.join(told)}." if told else ""


def _line(what: str, names: Sequence[str]) -> str:
    """Empty where it concerns no row."""
    return f"{what}: {listed(list(names))}." if names else ""
