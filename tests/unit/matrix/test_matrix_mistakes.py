"""Each file of tests/cases/matrix is a broken matrix, with the whole message expected in `#>` lines at its end.

UPDATE_GOLDEN=1 writes those lines anew: read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.errors import SpecError, SpecErrors
from orchestrator.matrix.loading import MOST_TOLD, load_matrix, parse_matrix

CASES = sorted((Path(__file__).parents[2] / "cases" / "matrix").glob("*.yaml"))


MARK = "#> "


def _message(text: str, file: str) -> str:
    """What is said of a broken matrix; every mistake has its place."""
    with pytest.raises(SpecError) as caught:
        parse_matrix(text, file)
    for error in caught.value.errors if isinstance(caught.value, SpecErrors) else (caught.value,):
        assert error.place.file == file
        assert error.place.line
    return str(caught.value)


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.stem))
def test_mistake_is_told_with_place_and_cure(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    text = "".join(f"{line}\n" for line in lines if line and not line.startswith(MARK))
    message = _message(text, path.name)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text + "".join(f"{MARK}{line}\n" for line in message.split("\n")), encoding="utf-8")
    assert [f"{MARK}{line}" for line in message.split("\n")] == [line for line in lines if line.startswith(MARK)]


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
