"""`matrix wheels`: of which distributions the servers of a matrix are made, and their wheels as one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.errors import SpecError, nearest
from orchestrator.images.simple_index import Coverage
from orchestrator.matrix.models import Matrix
from orchestrator.matrix.requirement import pinned_versions
from orchestrator.matrix.resolved import Variant, catalogue
from orchestrator.matrix.suite_checks import matches


def distributions(matrix: Matrix, patterns: Sequence[str]) -> dict[str, str]:
    """Name -> pinned version, or "": the servers' own distributions, and those with native code that they need.

    Raises SpecError for a pattern that names no server.
    """
    variants = catalogue(matrix)
    found: dict[str, str] = {}
    for pattern in patterns:
        named = [variant for variant in variants if matches(pattern, variant)]
        if not named:
            names = [name for variant in variants for name in (variant.server, variant.name)]
            raise SpecError(
                f"no server is called {pattern!r}", nearest=nearest(pattern, dict.fromkeys(names)),
                next_step=f"one of: {', '.join(matrix.servers)}",
            )  # fmt: skip
        for variant in named:
            found |= {name: pinned for name, pinned in _of_variant(variant).items() if not found.get(name)}
    return found


def _of_variant(variant: Variant) -> dict[str, str]:
    return dict.fromkeys(variant.compiled, "") | pinned_versions(variant.install)


def wheels_json(found: Mapping[str, Coverage | None]) -> dict[str, Any]:
    """The same as one document; `schema` tells its form."""
    return {
        "schema": "appserver-matrix/wheels/1",
        "distributions": {name: _as_json(covered) if covered else None for name, covered in found.items()},
    }


def _as_json(covered: Coverage) -> dict[str, Any]:
    wheels = {f"{libc} {architecture}": dict(by_abi) for (libc, architecture), by_abi in covered.wheels.items()}
    return {"version": str(covered.version), "wheels": wheels, "sdist": covered.sdist}
