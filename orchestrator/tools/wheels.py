"""`matrix wheels`: which wheels of a server, and of what it compiles, exist for which Python, libc and machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from orchestrator.errors import EnvironmentProblem, SpecError, nearest
from orchestrator.images.ask_pip import MEDIA_TYPE
from orchestrator.images.simple_index import TARGETS, Coverage, File, coverage, parse_project, release
from orchestrator.matrix.models import Matrix
from orchestrator.matrix.requirement import pinned_versions
from orchestrator.matrix.resolved import Variant, catalogue
from orchestrator.matrix.suite_checks import matches

ASK_TIMEOUT_S = 300.0
_NEXT = "`matrix doctor` checks the package index"


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


def look_up(wanted: Mapping[str, str]) -> dict[str, Coverage | None]:
    """What the index has of each; None where it has no such release. Raises EnvironmentProblem."""
    answers = _ask(list(wanted))
    return {name: read_answers(answers[name], pinned) for name, pinned in wanted.items()}


def read_answers(answers: Sequence[Mapping[str, Any]], pinned: str) -> Coverage | None:
    """From the answers of all indexes. Raises EnvironmentProblem where one of them does not speak the JSON API."""
    files: list[File] = []
    for answer in answers:
        if answer["status"] == 404:
            continue
        if answer["status"] != 200 or not answer["type"].startswith(MEDIA_TYPE):
            what = f"status {answer['status']}, {answer['type'] or 'no type'}"
            raise EnvironmentProblem(f"the package index has no simple JSON API (PEP 691): {what}", next_step=_NEXT)
        try:
            files += parse_project(answer["text"])
        except ValueError as error:
            raise EnvironmentProblem(f"the package index: {error}", next_step=_NEXT) from error
    version = release(files, pinned)
    return coverage(files, version) if version is not None else None


def _ask(names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    command = [sys.executable, "-m", "orchestrator.images.ask_pip", *names]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ASK_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise EnvironmentProblem(f"the package index: no answer in {ASK_TIMEOUT_S:.0f} s", next_step=_NEXT) from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise EnvironmentProblem(f"the package index cannot be asked: {last[:300]}", next_step=_NEXT)
    found: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return found


def wheels_table(found: Mapping[str, Coverage | None]) -> Table:
    """One row per distribution, one column per libc and architecture."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("distribution", "version", *(" ".join(target) for target in TARGETS), "sdist"):
        table.add_column(title)
    for name, covered in found.items():
        if covered is None:
            table.add_row(name, "not in the index")
        else:
            labels = (covered.labels(*target) or "—" for target in TARGETS)
            table.add_row(name, str(covered.version), *labels, "yes" if covered.sdist else "—")
    return table


def wheels_json(found: Mapping[str, Coverage | None]) -> dict[str, Any]:
    """The same as one document; `schema` tells its form."""
    return {
        "schema": "appserver-matrix/wheels/1",
        "distributions": {name: _as_json(covered) if covered else None for name, covered in found.items()},
    }


def _as_json(covered: Coverage) -> dict[str, Any]:
    wheels = {f"{libc} {architecture}": dict(by_abi) for (libc, architecture), by_abi in covered.wheels.items()}
    return {"version": str(covered.version), "wheels": wheels, "sdist": covered.sdist}
