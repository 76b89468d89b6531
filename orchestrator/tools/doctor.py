"""`matrix doctor`: what here would spoil a measurement or stop it, and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.tools.doctor_measuring import MEASURING
from orchestrator.tools.doctor_running import BOTH, RUNNING, Finding
from orchestrator.tools.environment import Environment


def findings(environment: Environment) -> tuple[Finding, ...]:
    """Everything that was found, in the order of the tables."""
    return tuple(finding for rule in (*RUNNING, *MEASURING) for finding in rule(environment))


def warnings(environment: Environment) -> tuple[str, ...]:
    """A line with its cure for each thing that would bend figures."""
    found = (finding for rule in MEASURING for finding in rule(environment) if finding.severity != "ok")
    return tuple(f"{one.severity}: {one.check}: {one.text}" + (f" -> {one.cure}" if one.cure else "") for one in found)


def exit_code(found: Sequence[Finding]) -> int:
    """0: nothing bad; 1: something is; 3: neither engine can run."""
    if frozenset().union(*(finding.stops for finding in found)) >= BOTH:
        return 3
    return 1 if any(finding.severity == "bad" for finding in found) else 0
