"""The figures of a cell as readers see them: names, units, bounds; for tables, places of a pivot and pictures alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.evidence.model import Summary
from orchestrator.figures import SHOWN, Estimate, Raw, Shown
from orchestrator.layout.text import NONE, interval
from orchestrator.report.standings import Standing

_SIGNS = {"": "", ">=": "≥", "<=": "≤"}


@dataclass(frozen=True)
class Measure(Shown):
    """A figure as readers see it, taken from the summary of a record."""

    field: str = ""

    def estimate(self, summary: Summary) -> Estimate | None:
        """In its unit; without an interval where none is known."""
        found: Raw = self.of(summary) if self.of else getattr(summary, self.field)
        if found is None:
            return None
        known = found if isinstance(found, Estimate) else Estimate(value=found, low=None, high=None)
        low, high = (None if end is None else end / self.scale for end in (known.low, known.high))
        return Estimate(value=known.value / self.scale, low=low, high=high)

    def signed(self, standing: Standing, summary: Summary) -> str:
        """What stands before it."""
        if self.sign == "bound":
            return "≥" if standing.bound else ""
        return _SIGNS.get(summary.ratio_bound, "") if self.sign == "ratio" else ""


MEASURES: Mapping[str, Measure] = {
    name: Measure(**vars(shown), field=figure.name) for name, (figure, shown) in SHOWN.items()
}
"""Those of a view by their names in matrix.yaml, and more."""


def heading(name: str, base: str) -> str:
    return (MEASURES[name].heading or MEASURES[name].column).format(base=base)


def whole(name: str, standing: Standing, summary: Summary) -> str:
    """For a column that says the unit: with its interval, where one is known."""
    measure = MEASURES[name]
    unit = measure.unit if measure.unit == " %" else ""
    return _said(name, standing, summary, lambda found, sign: interval(found, sign, measure.number) + unit)


def bare(name: str, standing: Standing, summary: Summary) -> str:
    """With its unit, without its interval."""
    measure = MEASURES[name]
    return _said(name, standing, summary, lambda found, sign: f"{sign}{measure.number(found.value)}{measure.unit}")


def _said(name: str, standing: Standing, summary: Summary, text: Callable[[Estimate, str], str]) -> str:
    """`text` of the estimate and its sign, or what stands in its place."""
    measure = MEASURES[name]
    found = measure.estimate(summary)
    if found is None:
        return NONE
    words = _of_ratio(name, standing, summary) if measure.ratio else ""
    return words or text(found, measure.signed(standing, summary))


def _of_ratio(name: str, standing: Standing, summary: Summary) -> str:
    """What stands in the place of a ratio that is none: of a row to itself, of two lower bounds, to a void figure."""
    if standing.reference:
        return standing.own
    if standing.baseless:
        return NONE
    return "?" if name == "ratio" and summary.ratio_bound == "?" else ""
