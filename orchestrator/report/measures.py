"""The figures of a cell as readers see them: names, units, bounds; for tables, places of a pivot and pictures alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.evidence.model import Estimate, Summary
from orchestrator.layout.text import NONE, interval, short, three
from orchestrator.report.entries import Entry

_SIGNS = {"": "", ">=": "≥", "<=": "≤"}
Raw = Estimate | float | None


def _no_sign(_: Entry, __: Summary) -> str:
    return ""


@dataclass(frozen=True)
class Measure:
    """`column`: over a column of figures, its unit in it; `heading`: over places whose texts have the unit themselves.

    `{base}` stands in both for what ratios refer to. `scale`: of a unit in raw ones. `loop`: which loop it says
    something of, where a view shows both: what came in is given in an open one, latency is a queue's in a closed one.
    """

    column: str
    heading: str
    unit: str
    of: Callable[[Summary], Raw]
    scale: float = 1.0
    number: Callable[[float], str] = three
    sign: Callable[[Entry, Summary], str] = _no_sign
    ratio: bool = False
    loop: str = ""

    def estimate(self, summary: Summary) -> Estimate | None:
        """In its unit; without an interval where none is known."""
        found = self.of(summary)
        if found is None:
            return None
        known = found if isinstance(found, Estimate) else Estimate(value=found, low=None, high=None)
        low, high = (None if end is None else end / self.scale for end in (known.low, known.high))
        return Estimate(value=known.value / self.scale, low=low, high=high)


def _latency(name: str) -> Measure:
    return Measure(
        f"{name} ms", name, " ms", lambda s: s.latency_intervals_us.get(name, s.latency_us.get(name)), 1e3, loop="open"
    )


def _percent(name: str, of: Callable[[Summary], float | None], number: Callable[[float], str] = three) -> Measure:
    return Measure(name, name, " %", of, 0.01, number)


def _bytes(column: str, heading: str, of: Callable[[Summary], float | None]) -> Measure:
    return Measure(column, heading, " MB", of, 1e6)


def _bound(entry: Entry, _: Summary) -> str:
    return "≥" if entry.bound else ""


def _ratio_sign(_: Entry, summary: Summary) -> str:
    return _SIGNS.get(summary.ratio_bound, "")


def _whole_number(value: float) -> str:
    return f"{value:.0f}"


def _switches(summary: Summary) -> float | None:
    found = (summary.voluntary_switches_per_request, summary.involuntary_switches_per_request)
    return None if None in found else sum(number for number in found if number is not None)


MEASURES: Mapping[str, Measure] = {
    "rps": Measure("requests/s", "requests/s", "", lambda s: s.rps, number=short, sign=_bound, loop="closed"),
    "ratio": Measure(
        "× {base}", "× {base}", "×", lambda s: s.ratio, number=short, sign=_ratio_sign, ratio=True, loop="closed"
    ),
    "asked": Measure("asked/s", "asked/s", "", lambda s: s.rate_asked, number=short),
    "in-time": _percent("in time", lambda s: s.rate_share),
    "p50": _latency("p50"),
    "p99": _latency("p99"),
    "p99.9": _latency("p99.9"),
    "ceiling": _percent("ceiling", lambda s: s.ceiling_share or None, _whole_number),
    "between": _percent("between", lambda s: s.between),
    "within": _percent("within", lambda s: s.within),
    "errors": Measure("errors", "errors", " err", lambda s: float(s.errors), number=_whole_number),
    "cpu": Measure("CPU µs/req", "CPU/req", " µs", lambda s: s.cpu_us_per_request),
    "cpu-user": Measure("user", "user", " µs", lambda s: s.cpu_user_us_per_request),
    "cpu-system": Measure("system", "system", " µs", lambda s: s.cpu_system_us_per_request),
    "cpu-ratio": Measure("req/CPU × {base}", "req/CPU × {base}", "×", lambda s: s.cpu_ratio, ratio=True),
    "memory-idle": _bytes("idle MB", "idle memory", lambda s: s.memory_idle_bytes),
    "memory": _bytes("MB", "memory", lambda s: s.memory_bytes),
    "memory-per-worker": _bytes("MB/worker", "memory/worker", lambda s: s.memory_per_worker_bytes),
    "switches": Measure("switches/req", "switches/req", "", _switches),
    "connections": Measure("conn/req", "connections/req", "", lambda s: s.connections_per_request),
}
"""Those of a view by their names in matrix.yaml, and more."""


def heading(name: str, base: str) -> str:
    return MEASURES[name].heading.format(base=base)


def whole(name: str, entry: Entry, summary: Summary) -> str:
    """For a column that says the unit: with its interval, where one is known."""
    measure = MEASURES[name]
    unit = measure.unit if measure.unit == " %" else ""
    return _said(name, entry, summary, lambda found, sign: interval(found, sign, measure.number) + unit)


def bare(name: str, entry: Entry, summary: Summary) -> str:
    """With its unit, without its interval."""
    measure = MEASURES[name]
    return _said(name, entry, summary, lambda found, sign: f"{sign}{measure.number(found.value)}{measure.unit}")


def _said(name: str, entry: Entry, summary: Summary, text: Callable[[Estimate, str], str]) -> str:
    """`text` of the estimate and its sign, or what stands in its place."""
    measure = MEASURES[name]
    found = measure.estimate(summary)
    if found is None:
        return NONE
    words = _of_ratio(name, entry, summary) if measure.ratio else ""
    return words or text(found, measure.sign(entry, summary))


def _of_ratio(name: str, entry: Entry, summary: Summary) -> str:
    """What stands in the place of a ratio that is none: of a row to itself, of two lower bounds, to a void figure."""
    if entry.reference:
        return entry.own
    if entry.baseless:
        return NONE
    return "?" if name == "ratio" and summary.ratio_bound == "?" else ""
