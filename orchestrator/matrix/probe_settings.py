"""Which settings a suite may give to each probe: a setting that its probe would not read is a mistake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticKnownError


@dataclass(frozen=True)
class ProbeSettings:
    """What a suite may say where its probe is this one.

    `compares`: its figures are ratios to a reference, so that `baseline` or `against` is needed, and `view`, `apart`
    and a `precision` make sense. `tls`: it can be measured over TLS. `open`: it can drive load at a fixed rate.
    """

    compares: bool = False
    tls: bool = False
    open: bool = False


SETTINGS: dict[str, ProbeSettings] = {
    "load": ProbeSettings(compares=True, tls=True, open=True),
    "install": ProbeSettings(),
    "startup": ProbeSettings(),
    "shutdown": ProbeSettings(),
    "deploy": ProbeSettings(),
}
"""By the name of the probe; orchestrator/probes/registry.py says what each of them does."""


def list_probes(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema of a probe's name which there are."""
    schema["enum"] = [*SETTINGS]


def known_probe(name: str) -> str:
    """The name of a probe that there is. Raises the error of pydantic for a value that is not listed."""
    if name in SETTINGS:
        return name
    *others, last = map(repr, SETTINGS)
    raise PydanticKnownError("literal_error", {"expected": f"{', '.join(others)} or {last}"})
