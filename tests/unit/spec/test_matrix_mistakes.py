"""Each file of tests/cases/matrix is a broken matrix; its first comment lines hold the whole message expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import SpecError, SpecErrors
from orchestrator.spec.loading import MOST_TOLD, load_matrix, parse_matrix

CASES = sorted((Path(__file__).parents[2] / "cases" / "matrix").glob("*.yaml"))


def _expected(text: str) -> str:
    head = [line for line in text.splitlines() if line.startswith("#>")]
    return "\n".join(line.removeprefix("#>").removeprefix(" ") for line in head)


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.stem))
def test_mistake_is_told_with_place_and_cure(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        parse_matrix(text, path.name)
    assert str(caught.value) == _expected(text)
    for error in caught.value.errors if isinstance(caught.value, SpecErrors) else (caught.value,):
        assert error.place.file == path.name
        assert error.place.line


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read: No such file"):
        load_matrix(tmp_path / "nowhere.yaml")


def test_file_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "matrix.yaml").write_bytes(b"version: 1 # caf\xe9\n")
    with pytest.raises(SpecError, match="is not UTF-8 text"):
        load_matrix(tmp_path / "matrix.yaml")


def test_many_mistakes_are_cut_short() -> None:
    text = "version: 1\n" + "".join(f"field{number}: 1\n" for number in range(100))
    with pytest.raises(SpecErrors) as caught:
        parse_matrix(text)
    assert len(caught.value.errors) == MOST_TOLD


def test_file_that_is_too_large() -> None:
    with pytest.raises(SpecError, match="larger than"):
        parse_matrix("#" * (1 << 18) + "\nversion: 1\n")
