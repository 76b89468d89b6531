"""What a record's file holds is all that was measured, in whatever form."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engines.memory import MemoryEngine
from orchestrator.errors import SpecError
from orchestrator.evidence import form, histograms
from orchestrator.evidence.columns import columns, rows
from orchestrator.evidence.model import Record
from orchestrator.evidence.store import find_run, read_run, upgrade
from orchestrator.images.plan import ROOT
from orchestrator.judge.judgement import judge_again
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.pipeline import Order, run

OLD = ROOT / "tests" / "cases" / "records" / "record-1"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-1, 1) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
SAMPLES = st.lists(st.tuples(st.integers(0, histograms.HIGHEST_US), st.integers(1, 10**6)), max_size=6)


def text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(st.lists(VALUES, max_size=4) | st.lists(OBJECTS, max_size=4), OBJECTS)
def test_columns_give_back_whatever_rows_they_were_made_of(made: list[Any], usual: dict[str, Any]) -> None:
    """1, 1.0 and true are different; a field that is usual, absent, or of another type in some rows is so again."""
    for wont in (usual, *made[:1]):
        packed = json.loads(json.dumps(columns(made, wont)))
        assert text(rows(packed, len(made), wont)) == text(made)


def test_what_is_the_same_in_all_rows_stands_once_and_the_usual_not_at_all() -> None:
    made = [{"a": 1, "b": {"c": at, "d": 0}, "e": [1, 2]} for at in range(3)]
    assert columns(made, {"b": {"d": 0}}) == {"a": [1], "b": {"c": [0, 1, 2]}, "e": [[1, 2]]}


@pytest.mark.parametrize("packed", [{"a": [1, 2]}, {"a": 1}, {"a": {"b": []}}])
def test_a_column_without_a_value_for_each_row_is_refused(packed: Any) -> None:
    with pytest.raises(ValueError, match="a column of 3 rows"):
        rows(packed, 3)


def histogram(samples: list[tuple[int, int]]) -> str:
    made = HdrHistogram(histograms.LOWEST_US, histograms.HIGHEST_US, histograms.DIGITS)
    for value, count in samples:
        made.record_value(value, count)
    return str(made.encode().decode())


@given(st.lists(SAMPLES, min_size=1, max_size=5))
def test_histograms_packed_together_have_the_same_counts(samples: list[list[tuple[int, int]]]) -> None:
    texts = [histogram(one) for one in samples]
    again = histograms.unpack(histograms.pack(tuple(texts)), len(texts))
    assert [np.array_equal(histograms.decoded(one), histograms.decoded(own))
            for one, own in zip(again, texts, strict=True)] == [True] * len(texts)  # fmt: skip
    assert again == texts


def test_packed_histograms_that_are_damaged_or_of_another_number_are_refused() -> None:
    packed = histograms.pack((histogram([(5, 1)]),))
    for text_, number in ((packed, 2), (packed[:-5], 1), ("", 1), ('not base85 "', 1)):
        with pytest.raises(ValueError, match=r"packed histograms|base85"):
            histograms.unpack(text_, number)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD, tmp_path / "old"))


def test_records_of_the_first_form_are_read_and_upgraded_without_a_loss(old: Path) -> None:
    """Every figure of every slice, against the old file itself."""
    files = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (OLD / "cells").iterdir()}
    before = read_run(old)
    assert upgrade(old) == len(files) == 7
    assert read_run(old) == before
    for record in before[1]:
        held = next(one for one in files.values() if one["id"] == record.id)
        slices = [slice_ for round_ in held["rounds"] for slice_ in round_["slices"]]
        assert text([s.load for r in record.rounds for s in r.slices]) == text([slice_["load"] for slice_ in slices])
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in (old / "cells").iterdir()]
    assert {one["schema"] for one in stored} == {form.FORM}
    assert sum(len(one["rounds"]["number"]) for one in stored if "rounds" in one) > 0


def test_a_column_that_is_cut_short_is_told_as_damage(old: Path) -> None:
    upgrade(old)
    path = next(path for path in (old / "cells").iterdir() if '"slices"' in path.read_text(encoding="utf-8"))
    held = json.loads(path.read_text(encoding="utf-8"))
    held["slices"]["order"] = held["slices"]["order"][1:-1]
    path.write_text(json.dumps(held), encoding="utf-8")
    assert any("a column of" in trouble for trouble in find_run(old).troubles)
    with pytest.raises(SpecError, match="a column of"):
        read_run(old)


def test_rounds_are_added_and_those_before_are_kept(tmp_path: Path) -> None:
    """Whatever is written after a round, what the rounds before found is in the file as it was."""
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    seen: list[dict[str, list[Any]]] = []

    def look(_: object) -> None:
        seen.append({path.name: _rounds(path) for path in sorted((tmp_path / "one" / "cells").glob("*.json"))})

    run(Order(matrix, expand(matrix, "smoke"), tmp_path / "one"), MemoryEngine(), look)
    look(None)
    assert max(len(one) for found in seen for one in found.values()) > 1
    for before, after in pairwise(seen):
        for name, measured in before.items():
            assert text(after[name][: len(measured)]) == text(measured)


def _rounds(path: Path) -> list[Any]:
    document: list[Any] = form.read(json.loads(path.read_text(encoding="utf-8"))).get("rounds", [])
    return document


def test_judging_again_changes_nothing_in_the_file_but_the_judgement(tmp_path: Path) -> None:
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    folder = tmp_path / "one"
    run(Order(matrix, expand(matrix, "smoke"), folder), MemoryEngine(), lambda _: None)
    before = {path.name: path.read_text(encoding="utf-8") for path in (folder / "cells").iterdir()}
    judge_again(folder)
    for path in (folder / "cells").iterdir():
        one, other = (json.loads(found) for found in (before[path.name], path.read_text(encoding="utf-8")))
        assert {name for name in one if one[name] != other[name]} <= {"judgement", "written"}


def test_the_form_of_the_record_is_that_of_its_model() -> None:
    assert Record.model_fields["schema_"].default == form.FORM
