"""What the ratios of a comparison hold up, and what is wrong with the rows that they refer to."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.evidence.model import Record
from orchestrator.figures import Estimate
from orchestrator.layout.text import listed, short
from orchestrator.report.axes import WORDS
from orchestrator.report.compared_run import ComparedRun
from orchestrator.report.standings import Standing, effects

_SIGNS = {">=": "at least ", "<=": "at most ", "?": "", "": ""}


def reference_warnings(compared: ComparedRun, standings: Sequence[Standing]) -> tuple[str, ...]:
    """What is wrong with the row, or with the rows, that ratios refer to."""
    if compared.run.against:
        return _own_warnings(compared, standings)
    found = [
        baseline_warning(compared.run.baseline, next((standing for standing in standings if standing.reference), None))
    ]
    return tuple(filter(None, found))


def baseline_warning(baseline: str, reference: Standing | None) -> str:
    """What is wrong with the row that all ratios refer to; "" where nothing is."""
    if reference is None or reference.record.summary is None:
        return f"The baseline {baseline} has no figure here: there are no ratios."
    found = effects(reference.record)
    if "void" in found:
        return f"The figure of the baseline {baseline} is void: no ratio is printed."
    if "unranked" in found:
        return f"The baseline {baseline} is itself outside the order ({reference.marks}): ratios prove nothing."
    if "bound" in found:
        return f"The baseline {baseline} is a lower bound ({reference.marks}): ratios to it are upper bounds."
    return ""


def _own_warnings(compared: ComparedRun, standings: Sequence[Standing]) -> tuple[str, ...]:
    """Where each row has a reference of its own: by what is wrong with it, the rows that it spoils."""
    spoilt: dict[str, dict[str, None]] = {}
    for standing in standings:
        if not standing.reference and (why := _spoilt(standing.base)):
            spoilt.setdefault(why, {})[standing.name] = None
    return tuple(f"{listed(list(names))}: with {compared.sign}, {why}." for why, names in spoilt.items())


def _spoilt(base: Record | None) -> str:
    if base is None or base.summary is None:
        return "there is no figure, so there is no ratio"
    found = effects(base)
    if "void" in found:
        return "the figure is void, so no ratio is printed"
    if "unranked" in found:
        return "the figure is outside the order, so ratios prove nothing"
    return "the figure is a lower bound, so ratios are upper bounds" if "bound" in found else ""


def ratio_lines(compared: ComparedRun, standings: Sequence[Standing], across: str = "") -> tuple[str, ...]:
    """Which rows are resolved ahead of what their ratios refer to, which behind, which not. `across`: see `named`."""
    sides: dict[str, list[tuple[Standing, Estimate]]] = {"ahead": [], "behind": [], "open": []}
    for standing, ratio, bound in usable(standings):
        sides[side(ratio, bound)].append((standing, ratio))
    base = f"the same server with {compared.sign}" if compared.run.against else compared.run.baseline
    found = (
        line(f"Resolved ahead of {base}", *named(sides["ahead"], across)),
        line(f"Resolved behind {base}", *named(sides["behind"], across)),
        line(f"Not resolved against {base}", *named(sides["open"], across)),
        "These ratios compare each server with itself: the greater ratio is not the faster server."
        if compared.run.against and any(sides.values())
        else "",
    )
    return tuple(filter(None, found))


def usable(standings: Sequence[Standing]) -> list[tuple[Standing, Estimate, str]]:
    """Rows with a ratio that may prove something: neither they nor what it refers to stand outside the order."""
    return [
        (standing, summary.ratio, summary.ratio_bound)
        for standing in standings
        if (summary := standing.record.summary) and summary.ratio and standing.rank and not standing.reference
        and standing.base and standing.base.summary and not effects(standing.base) & {"void", "unranked"}
    ]  # fmt: skip


def side(ratio: Estimate, bound: str) -> str:
    """ahead, behind or open: a lower bound can only prove that a row is ahead, an upper bound that it is behind."""
    if ratio.low is None or ratio.high is None or bound == "?":
        return "open"
    if ratio.low > 1 and bound != "<=":
        return "ahead"
    return "behind" if ratio.high < 1 and bound != ">=" else "open"


def named(found: Sequence[tuple[Standing, Estimate]], across: str = "") -> list[str]:
    """granian/asgi·starlette (1.42×); with `across` workers one text: a at 2 (1.98×), 4 (3.90×); b at 2 (1.80×)."""
    if not across:
        return [f"{standing.name} {_ratio(standing, ratio)}".strip() for standing, ratio in found]
    words = WORDS[across]
    told: dict[str, list[str]] = {}
    for standing, ratio in found:
        place = words.heading(getattr(standing.record.cell, across))
        told.setdefault(standing.name, []).append(f"{place} {_ratio(standing, ratio)}".strip())
    text = "; ".join(f"{name} {words.at} {', '.join(texts)}" for name, texts in told.items())
    return [text] if text else []


def _ratio(standing: Standing, ratio: Estimate) -> str:
    bound = standing.record.summary.ratio_bound if standing.record.summary else ""
    return "" if side(ratio, bound) == "open" else f"({_SIGNS[bound]}{short(ratio.value)}×)"


def line(what: str, *names: str) -> str:
    """Empty where it concerns no row."""
    return f"{what}: {listed(list(names))}." if names else ""
