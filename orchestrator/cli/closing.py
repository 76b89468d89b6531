"""What a run is called, its last lines, and what it ends with: whether anything usable was measured."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from orchestrator.evidence.model import Record
from orchestrator.probes.registry import section_of

_COSTS = {
    "images_s": "images {:.0f} s",
    "rounds_s": "measuring {:.0f} s",
    "overhead_s_per_cell": "overhead {:.2f} s per cell",
    "orchestrator_cpu_share": "own CPU {:.1%} of a core",
}
NAMED = 2
"""So many cells are named for each thing that spoilt them."""


def run_name(suite: str) -> str:
    """The id of a new run, and its folder's name: no two are the same, even where they start in the same second."""
    return f"{datetime.now():%Y-%m-%dT%H-%M-%S}-{suite}-{secrets.token_hex(3)}"


def costs_told(costs: Mapping[str, float | None]) -> Iterator[str]:
    """What is known of them, in words."""
    for name, text in _COSTS.items():
        if (value := costs.get(name)) is not None:
            yield text.format(value)


def usable(record: Record) -> bool:
    """Whether a cell has a result: a figure that is not void; of an install, that it failed is one, too."""
    if section_of(record) is not None:
        return True
    void = any(verdict.effect == "void" for verdict in record.verdicts)
    return record.outcome == "measured" and not void


def why_unusable(records: Sequence[Record]) -> str:
    """Why a run ends with exit code 1: nothing in it is usable, or a cell could not be judged; "" where it is fine."""
    if not any(map(usable, records)):
        return f"nothing usable was measured: {_by_reason(records)}" if records else "nothing was measured"
    failed = [record for record in records if record.outcome == "not_judged"]
    return f"some cells could not be judged, and keep their rounds: {_by_reason(failed)}" if failed else ""


def _by_reason(records: Sequence[Record]) -> str:
    """2 not started (a·… and b·…: no module named x); 1 void (c·…: errors, 900 reset)."""
    found: dict[str, dict[str, list[str]]] = {}
    for record in records:
        how, why = _spoilt(record)
        found.setdefault(how, {}).setdefault(why, []).append(record.id)
    return "; ".join(_told(how, whys) for how, whys in found.items())


def _told(how: str, whys: Mapping[str, Sequence[str]]) -> str:
    ids, first = [own for some in whys.values() for own in some], next(iter(whys))
    others = " …" if len(whys) > 1 else ""
    return f"{len(ids)} {how} ({_named(ids)}: {first}{others})"


def _spoilt(record: Record) -> tuple[str, str]:
    """What it came to, and why."""
    void = next((verdict for verdict in record.verdicts if verdict.effect == "void"), None)
    if record.outcome == "measured" and void:
        return "void", f"{void.rule}, {void.text}"
    return record.outcome.replace("_", " "), record.reason.line if record.reason else "no reason on record"


def _named(ids: Sequence[str]) -> str:
    more = len(ids) - NAMED
    return ", ".join(ids[:NAMED]) + (f" and {more} more" if more > 0 else "")
