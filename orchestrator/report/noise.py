"""A/A pairs: what one server under two names differs by is the noise of the machine, and the floor of any finding."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.figures import Estimate
from orchestrator.layout.text import listed
from orchestrator.report.references import line, side, usable
from orchestrator.report.standings import Standing


def noise_lines(standings: Sequence[Standing]) -> tuple[str, ...]:
    """What each pair differs by, how small a difference proves nothing, and which pairs are resolved all the same."""
    pairs = [(standing, ratio) for standing, ratio, bound in usable(standings) if not bound and ratio.low is not None]
    if not pairs:
        return ("No pair has an interval that may be used: the noise floor is not known.",)
    floor = max(_reach(ratio) for _, ratio in pairs)
    found = (
        f"An A/A pair, one server under two names, differs by {listed([_told(*pair) for pair in pairs])}.",
        f"Noise floor: {floor:.1f} %. Differences below that prove nothing here.",
        line(
            "Resolved though nothing differs, as one pair of twenty may be",
            *(standing.name for standing, ratio in pairs if side(ratio, "") != "open"),
        ),
        line("Prove nothing, and are left out of it", *_left_out(standings, pairs)),
    )
    return tuple(filter(None, found))


def _reach(ratio: Estimate) -> float:
    """Percent from 1 to the farther end of the interval."""
    return max(abs(_percent(end)) for end in (ratio.low, ratio.high) if end is not None)


def _told(standing: Standing, ratio: Estimate) -> str:
    ends = (
        "" if ratio.low is None or ratio.high is None else f" [{_percent(ratio.low):+.1f}, {_percent(ratio.high):+.1f}]"
    )
    return f"{_percent(ratio.value):+.1f} %{ends} ({standing.name})"


def _percent(ratio: float) -> float:
    return round((ratio - 1) * 100, 1) + 0.0  # no -0.0


def _left_out(standings: Sequence[Standing], pairs: Sequence[tuple[Standing, Estimate]]) -> list[str]:
    """Names of pairs that are measured and not used."""
    used = {standing.name for standing, _ in pairs}
    return list(dict.fromkeys(e.name for e in standings if not e.reference and e.record.summary and e.name not in used))
