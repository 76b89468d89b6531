"""The simple JSON API, on recorded answers (cut to a few releases, without URLs) and on anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from orchestrator.images.simple_index import TARGETS, File, coverage, parse_project, release

CASES = Path(__file__).parents[2] / "cases" / "simple-index"
ALL_THREE = "cp313 cp314 cp314t"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PART = st.text("abc3.-_0!+ ", max_size=12)
NAMES = st.builds("{}-{}{}".format, PART, PART, st.sampled_from((".whl", ".tar.gz", ".zip", "-py3-none-any.whl", "")))


def recorded(name: str) -> tuple[File, ...]:
    return parse_project((CASES / f"{name}.json").read_text())


def document(*names: str, **fields: Any) -> str:
    files = [{"filename": name, **fields} for name in names]
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "x", "files": files})


@pytest.mark.parametrize(
    ("name", "pinned", "version", "labels"),
    [
        ("granian", "2.8.9", "2.8.9", (ALL_THREE, ALL_THREE, ALL_THREE, ALL_THREE)),
        ("watchfiles", "", "1.3.0", ("abi3 cp314t",) * 4),  # the stable ABI is none of the build without the GIL
        ("freastal", "0.0.3", "0.0.3", ("cp313", "cp313", "", "")),
        ("socketify", "0.0.31", "0.0.31", ("", "", "", "")),  # cp313-cp313-any: a tag that pip never accepts
        ("uwsgi", "2.0.31", "2.0.31", ("", "", "", "")),
        ("waitress", "", "3.0.2", ("pure", "pure", "pure", "pure")),
    ],
)
def test_recorded_answers(name: str, pinned: str, version: str, labels: tuple[str, ...]) -> None:
    files = recorded(name)
    found = release(files, pinned)
    assert found == Version(version)
    covered = coverage(files, found)
    assert tuple(covered.labels(*target) for target in TARGETS) == labels
    assert covered.sdist


def test_the_newest_release_is_neither_a_preview_nor_withdrawn() -> None:
    files = parse_project(document("x-1.0.tar.gz", "x-2.0b1.tar.gz"))
    assert release(files) == Version("1.0")
    assert release((*files, *parse_project(document("x-3.0.tar.gz", yanked="broken")))) == Version("1.0")
    assert release(files, "2.0b1") == Version("2.0b1")
    assert release(files, "4.0") is None
    assert release(()) is None


@pytest.mark.parametrize(
    ("wheel", "labels"),
    [
        ("x-1.0-cp313-cp313-manylinux2014_x86_64.whl", ("cp313", "", "", "")),
        ("x-1.0-cp39-abi3-musllinux_1_2_aarch64.whl", ("", "", "", "abi3")),
        ("x-1.0-py3-none-manylinux_2_28_x86_64.whl", ("py3", "", "", "")),
        ("x-1.0-cp313-none-any.whl", ("pure", "pure", "pure", "pure")),
        ("x-1.0-cp312-cp312-manylinux2014_x86_64.whl", ("", "", "", "")),
        ("x-1.0-cp313-cp313-linux_x86_64.whl", ("", "", "", "")),  # no index takes it
        ("x-1.0-cp313-cp313-macosx_11_0_arm64.whl", ("", "", "", "")),
    ],
)
def test_tags(wheel: str, labels: tuple[str, ...]) -> None:
    covered = coverage(parse_project(document(wheel)), Version("1.0"))
    assert tuple(covered.labels(*target) for target in TARGETS) == labels
    assert not covered.sdist


def test_a_wheel_of_one_python_is_none_of_another() -> None:
    covered = coverage(parse_project(document("x-1.0-cp313-none-any.whl")), Version("1.0"))
    assert covered.wheels["musl", "x86_64"] == {"cp313": "pure", "cp314": "", "cp314t": ""}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"files": {}}', '{"files": []}', '{"meta": {"api-version": "2.0"}, "files": []}']
)
def test_what_is_no_project_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_project(text)


@given(st.lists(st.fixed_dictionaries({"filename": NAMES | JSON}) | JSON, max_size=4))
def test_names_that_say_nothing_are_passed_over(entries: list[Any]) -> None:
    files = parse_project(json.dumps({"meta": {"api-version": "1.0"}, "files": entries}))
    assert len(files) <= len(entries)
    for file in files:
        covered = coverage(files, file.version)
        assert covered.sdist or any(file.tags for file in files)


@given(JSON)
def test_any_document_is_read_or_refused(found: Any) -> None:
    try:
        parse_project(json.dumps(found))
    except ValueError:
        return
    assert found["meta"]["api-version"].startswith("1")
