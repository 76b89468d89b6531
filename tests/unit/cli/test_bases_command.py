"""`matrix bases`: which stand-ins are wanted, and that what is here is left alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO

import pytest

from orchestrator.engines.docker.bases import standin_reference
from orchestrator.errors import SpecError
from orchestrator.images.context import Context
from orchestrator.images.plan import ROOT
from orchestrator.matrix.loading import load_matrix
from orchestrator.tools.bases import bases_of, make_bases

MATRIX = load_matrix(ROOT / "matrix.yaml").matrix


class Full:
    """An engine that has every image; it refuses to make another."""

    def digest(self, reference: str) -> str | None:
        return f"sha256:{reference}"

    def pull(self, reference: str, silence_s: float) -> str:
        raise AssertionError(reference)

    def import_rootfs(self, tar: IO[bytes], reference: str, labels: Mapping[str, str]) -> None:
        raise AssertionError(reference)

    def build_standin(
        self, context: Context, args: Mapping[str, str], reference: str, labels: Mapping[str, str], target: str
    ) -> None:
        raise AssertionError(reference)


def test_each_stand_in_is_named_once() -> None:
    wanted = bases_of(MATRIX, list(MATRIX.flavours), "3.13")
    assert sorted(base.standin for base in wanted) == ["debian", "musl", "slim"]


def test_a_flavour_of_two_bases_wants_both() -> None:
    wanted = bases_of(MATRIX, ["slim-multistage"], "3.13")
    assert [base.standin for base in wanted] == ["slim", "debian"]
    assert [base.official for base in wanted] == ["python:3.13-slim-trixie", "python:3.13-trixie"]


def test_an_unknown_flavour_gets_the_nearest_one() -> None:
    with pytest.raises(SpecError, match="slime") as raised:
        bases_of(MATRIX, ["slime"], "3.13")
    assert raised.value.nearest == "slim"


def test_what_is_here_is_not_made_again() -> None:
    told: list[str] = []
    wanted = bases_of(MATRIX, ["slim", "debian"], "3.13")
    make_bases(Full(), wanted, told.append)
    assert told == [f"{standin_reference(base)} is here" for base in wanted]
