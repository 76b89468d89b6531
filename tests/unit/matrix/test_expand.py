"""Axes -> cells: the properties that every suite has, and the reasons for what is left out."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import SpecError
from orchestrator.matrix.cell import file_name
from orchestrator.matrix.expand import Selection, expand
from orchestrator.matrix.loading import parse_matrix
from orchestrator.matrix.models import Matrix
from orchestrator.probes.load.measure import load_seconds

CASES = Path(__file__).parents[2] / "cases"
SMALL = (CASES / "small.matrix.yaml").read_text(encoding="utf-8")
CATALOGUE = (CASES / "four-servers.matrix.yaml").read_text(encoding="utf-8")
ID = re.compile(
    r"[a-z0-9-]+/[a-z0-9-]+·(slim|alpine)·(wheel|sdist)·py3\.\d+·[a-z-]+·w\d+(·t\d+)?(·tls)?(·twin)?(·echo)?(·open\d+)?·c\d+"
)
AXES: dict[str, st.SearchStrategy[list[Any]]] = {
    "flavour": st.lists(st.sampled_from(["slim", "alpine"]), min_size=1, unique=True),
    "mode": st.lists(st.sampled_from(["default", "wheel", "sdist"]), min_size=1, unique=True),
    "python": st.lists(st.sampled_from(["3.13", "3.14"]), min_size=1, unique=True),
    "app": st.lists(st.sampled_from(["flask", "raw-asgi"]), min_size=1, unique=True) | st.just(["all"]),
    "workload": st.lists(st.sampled_from(["item", "echo"]), min_size=1, unique=True),
    "workers": st.lists(st.integers(1, 4), min_size=1, max_size=2, unique=True),
    "threads": st.lists(st.integers(1, 9), min_size=1, max_size=2, unique=True),
    "tls": st.lists(st.booleans(), min_size=1, unique=True),
    "twin": st.lists(st.booleans(), min_size=1, unique=True),
    "open": st.lists(st.integers(1, 50), max_size=1).map(lambda rates: [0, *rates]),
    "connections": st.lists(st.integers(4, 999), min_size=1, max_size=3, unique=True),
}
SOME_AXES = st.fixed_dictionaries({}, optional=AXES)


def matrix_with(axes: dict[str, Any], **suite: Any) -> Matrix:
    """The catalogue of four servers with a suite `s` of these axes (JSON is YAML)."""
    reference = {} if "against" in suite else {"baseline": "threaded/plain"}
    whole = {**reference, "axes": {"server": "all", **axes}, **suite}
    return parse_matrix(f"{CATALOGUE}suites:\n  s: {json.dumps(whole)}\n").matrix


def selected(axes: dict[str, Any], *, only: tuple[str, ...] = (), **suite: Any) -> Selection | None:
    """None where no cell is left, which is an error of its own."""
    try:
        return expand(matrix_with(axes, **suite), "s", only=only)
    except SpecError as error:
        assert "cell" in error.what
        return None


@given(SOME_AXES)
@settings(max_examples=25, deadline=None)
def test_ids_are_unique_readable_and_stable(axes: dict[str, Any]) -> None:
    selection = selected(axes)
    if selection is None:
        return
    ids = [cell.id for cell in selection.cells]
    assert len(set(ids)) == len(set(map(file_name, ids))) == len(ids)
    assert all(ID.fullmatch(cell_id) for cell_id in ids)
    turned = selected({name: values[::-1] for name, values in axes.items()})
    assert turned
    assert sorted(ids) == sorted(cell.id for cell in turned.cells)


@pytest.mark.parametrize(("cpus", "workers"), [(1, {1, 2}), (2, {1, 2}), (17, {1, 2, 17})])
def test_workers_for_each_cpu_of_the_server(cpus: int, workers: set[int]) -> None:
    cells = expand(matrix_with({"workers": [1, 2, "cpus"]}), "s", cpus=cpus).cells
    assert {cell.workers for cell in cells if "workers" in cell.variant.supports} == workers


@given(SOME_AXES)
@settings(max_examples=25, deadline=None)
def test_every_point_is_a_cell_or_left_out_with_a_reason(axes: dict[str, Any]) -> None:
    selection = selected(axes)
    if selection is None:
        return
    ids, reasons = {cell.id for cell in selection.cells}, {left.id: left.why for left in selection.left_out}
    assert all(reasons.values())
    servers = (("threaded/plain", "flask"), ("single/plain", "flask"), ("whole/plain", "raw-asgi"))
    apps = axes.get("app", ["all"])
    for (name, app), workers, tls in itertools.product(servers, axes.get("workers", [1]), axes.get("tls", [False])):
        if app not in apps and "all" not in apps:
            assert "no app of this suite speaks" in reasons[name]
            continue
        launch = [text for text in (*ids, *reasons) if text.startswith(f"{name}·") and f"·w{workers}" in text]
        assert [text for text in launch if ("·tls" in text) == tls], (name, workers, tls)


@given(SOME_AXES, st.fixed_dictionaries({}, optional={
    "server": st.sampled_from(["threaded", "whole/plain", "*"]), "tls": st.booleans(), "flavour": st.just("slim"),
    "connections": st.integers(1, 999), "app": st.just("flask"),
}).filter(bool))  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_excluded_cells_are_gone_and_told(axes: dict[str, Any], rule: dict[str, Any]) -> None:
    before, after = selected(axes), selected(axes, exclude=[{**rule, "why": "reason"}])
    if before is None or after is None:
        return
    gone = [cell for cell in before.cells if cell not in after.cells]
    assert {left.id for left in after.left_out if left.why == "excluded: reason"} == {cell.id for cell in gone}
    others = {name: value for name, value in rule.items() if name != "server"}
    assert all(getattr(cell, name) == value for cell in gone for name, value in others.items())
    assert not any(
        all(getattr(cell, name) == value for name, value in others.items())
        and rule.get("server", "*") in ("*", cell.variant.server, cell.variant.name)
        for cell in after.cells
    )


@pytest.mark.parametrize(
    ("pattern", "variants"),
    [
        ("threaded", {"threaded/plain"}),
        ("whole/plain", {"whole/plain", "threaded/plain"}),  # the baseline stays beside what is asked for
        ("*/plain", {"threaded/plain", "single/plain", "whole/plain"}),
        ("*c8", {"threaded/plain", "single/plain", "whole/plain", "whole/tuned"}),
        ("*tuned*", {"whole/tuned", "threaded/plain"}),
    ],
)
def test_only(pattern: str, variants: set[str]) -> None:
    selection = selected({"connections": [8, 32]}, only=(pattern,))
    assert selection
    assert {cell.variant.name for cell in selection.cells} == variants
    assert all(left.why == "not asked for" for left in selection.left_out)


def test_only_keeps_the_closed_loop_of_an_open_one() -> None:
    selection = selected(
        {"server": ["whole/plain", "threaded"], "open": [0, 50], "connections": 32}, only=("whole*o*50*",)
    )
    assert selection
    assert [(cell.variant.name, cell.open) for cell in selection.cells] == [
        ("threaded/plain", 0), ("threaded/plain", 50), ("whole/plain", 0), ("whole/plain", 50)
    ]  # fmt: skip


def test_only_without_a_match_names_the_nearest() -> None:
    with pytest.raises(SpecError) as caught:
        expand(matrix_with({}), "s", only=("singel/plain",))
    assert caught.value.nearest == "single/plain"


def test_cell_that_stands_in_a_suite_twice() -> None:
    with pytest.raises(SpecError) as caught:
        expand(matrix_with({"connections": 8}, include=[{"server": "single", "connections": [4, 8]}]), "s")
    assert caught.value.place.field == "suites.s.include[0]"
    assert "single/plain·slim·wheel·py3.13·flask·w1·c8" in caught.value.what


def test_unknown_suite() -> None:
    with pytest.raises(SpecError) as caught:
        expand(parse_matrix(SMALL).matrix, "quik")
    assert caught.value.nearest == "quick"


def test_axes_beyond_all_measure() -> None:
    numbers = list(range(1, 101))
    with pytest.raises(SpecError, match="1000000 cells of each server"):
        expand(matrix_with({"connections": numbers, "threads": numbers, "workers": numbers}), "s")


def test_a_server_that_only_compiles_says_sdist_unless_asked_otherwise() -> None:
    default = selected({"server": "single"}, baseline="single/plain")
    both = selected({"server": "whole/tuned", "mode": ["default", "wheel"]}, baseline="whole/tuned")
    assert default
    assert both
    assert {cell.mode for cell in default.cells} == {"wheel"}
    assert {cell.mode for cell in both.cells} == {"sdist", "wheel"}


def test_seconds_grow_with_cells_and_rounds() -> None:
    one = selected({}, schedule={"rounds": 1, "slices": 2, "slice_s": 1.0, "warmup_s": 0.5, "first_warmup_s": 2.0})
    assert one
    assert load_seconds(one) == len(one.cells) * ((2.0 + 1.0) + 2 * 1.5)


def references(selection: Selection | None) -> dict[str, str]:
    """Without what all ids have in common."""
    assert selection
    common = ("·slim", "·wheel", "·py3.13", "·flask", "·raw-asgi")
    found = selection.references()
    for text in common:
        found = {own.replace(text, ""): other.replace(text, "") for own, other in found.items()}
    return found


def test_ratios_refer_to_the_baseline_of_the_same_load() -> None:
    found = references(selected({"server": ["single", "threaded"], "connections": [8, 32], "open": [0, 50]}))
    assert {other.partition("·")[0] for other in found.values()} == {"threaded/plain"}
    assert found["single/plain·w1·open50·c8"] == "threaded/plain·w1·t4·open50·c8"
    assert found["threaded/plain·w1·t4·c32"] == "threaded/plain·w1·t4·c32"


def test_apart_gives_each_flavour_a_baseline_of_its_own() -> None:
    axes = {"server": ["single", "threaded"], "flavour": ["slim", "alpine"], "connections": 8}
    together, apart = references(selected(axes)), references(selected(axes, apart=["flavour"]))
    assert together["single/plain·alpine·w1·c8"] == "threaded/plain·w1·t4·c8"
    assert apart["single/plain·alpine·w1·c8"] == "threaded/plain·alpine·w1·t4·c8"


def test_against_compares_each_cell_with_its_own_counterpart() -> None:
    selection = selected(
        {"server": ["single", "threaded"], "twin": [False, True], "open": [0, 50]}, against={"twin": False}
    )
    found = references(selection)
    assert (
        found["single/plain·w1·twin·open50·c32"] == found["single/plain·w1·open50·c32"] == "single/plain·w1·open50·c32"
    )
    assert selection
    assert {cell.twin for cell in selection.cells if selection.is_baseline(cell)} == {False}


def test_without_a_counterpart_there_is_no_ratio() -> None:
    """`single` has no threads to set, so none of its cells has a thread."""
    found = references(selected({"server": ["single", "threaded"], "threads": [1, 2]}, against={"threads": 1}))
    assert found == {f"threaded/plain·w1·t{count}·c32": "threaded/plain·w1·t1·c32" for count in (1, 2)}


def test_only_keeps_the_counterpart_of_what_is_asked_for() -> None:
    selection = selected({"server": "whole/plain", "workers": [1, 2, 4]}, against={"workers": 1}, only=("*w4*",))
    assert selection
    assert [cell.workers for cell in selection.cells] == [1, 4]


def test_an_open_loop_without_its_closed_one_is_left_out() -> None:
    rule = {"server": "single", "open": 0, "why": "is slow"}
    selection = selected({"server": ["single", "threaded"], "open": [0, 50], "connections": 8}, exclude=[rule])
    assert selection
    assert {cell.variant.name for cell in selection.cells} == {"threaded/plain"}
    assert [left.why for left in selection.left_out] == [
        "excluded: is slow", "its rate refers to a closed loop that is excluded"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("named", "there"),
    [("all", False), ("threaded", False), ("thr*", False), ("threaded/extra", True), ("threaded/*", True)],
)
def test_an_extra_variant_is_named_in_full(named: str, there: bool) -> None:
    text = CATALOGUE.replace("variants: {plain: {}}", "variants: {plain: {}, extra: {extra: true}}", 1)
    suite = {"baseline": "threaded/plain", "axes": {"server": [named, "threaded/plain"]}}
    matrix = parse_matrix(f"{text}suites:\n  s: {json.dumps(suite)}\n").matrix
    assert ("threaded/extra" in {cell.variant.name for cell in expand(matrix, "s").cells}) is there
