"""`matrix wheels`: what is looked up, and what an index may answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import EnvironmentProblem, SpecError
from orchestrator.images.index import MEDIA_TYPE, Answer, read_answers
from orchestrator.images.plan import ROOT
from orchestrator.matrix.loading import load_matrix
from orchestrator.tools.wheels import distributions

CASES = Path(__file__).parents[2] / "cases" / "simple-index"
MATRIX = load_matrix(ROOT / "matrix.yaml").matrix


def answer(name: str, status: int = 200, type_: str = MEDIA_TYPE) -> Answer:
    return Answer(status, type_, (CASES / f"{name}.json").read_text() if name else "")


def test_a_server_is_looked_up_with_what_it_compiles() -> None:
    found = distributions(MATRIX, ["granian"])
    assert list(found) == ["granian", "uvloop"]
    assert found["granian"] in str(MATRIX.servers["granian"].install)
    assert found["uvloop"] == ""
    assert set(found) < set(distributions(MATRIX, ["all"]))


def test_an_unknown_server_gets_the_nearest_one() -> None:
    with pytest.raises(SpecError, match="granain") as raised:
        distributions(MATRIX, ["granain"])
    assert raised.value.nearest == "granian"


def test_a_second_index_adds_its_files() -> None:
    assert read_answers([answer("", 404), answer("uwsgi")], "2.0.31") is not None
    assert read_answers([answer("", 404)], "") is None


@pytest.mark.parametrize(
    "wrong",
    [answer("uwsgi", 503), answer("uwsgi", type_="text/html"), Answer(200, MEDIA_TYPE, "{")],
)
def test_an_index_without_the_api_is_named_as_the_trouble(wrong: Answer) -> None:
    with pytest.raises(EnvironmentProblem, match="index"):
        read_answers([wrong], "")
