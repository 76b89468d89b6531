"""Whatever stands in the file, reading it ends soon, in a matrix or in a mistake with its place."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.errors import SpecError, SpecErrors
from orchestrator.matrix.loading import parse_matrix

GOOD = (Path(__file__).parents[2] / "cases" / "small.matrix.yaml").read_text(encoding="utf-8")
DATA: dict[str, Any] = yaml.safe_load(GOOD)
LINES = GOOD.splitlines()

NASTY = st.sampled_from([
    "&a [*a]", "*nowhere", "<<: {a: 1}", "!!python/name:os.system", "!x {}", "? [a]\n: b", "1: 2", "~: ~", ".nan",
    "-.inf", "2026-11-30", "2026-99-99", "2026-11-30T12:00:00Z", "0o17", "0b1", "1_000", "190:20:30", "9" * 400,
    "0x" + "f" * 400, '"\\ud800"', '"\\U00110000"', "\x00", "\ud800", "{", "[" * 500, "- " * 500, "]", "'", "|\n  x",
    "%YAML 9.9", "---", "=", "{}", "[]", "null", "yes", "{port!r}", "{0}", "{", "é", "\u2028", "\ufeff", "\t", "&" * 50,
])  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["all", "*", "waitress", "waitress/*", "{", "{port:{x}}", "'", "3.13", "[key]", "a" * 200]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def _ends_well(text: str) -> None:
    try:
        parse_matrix(text, "m.yaml")
    except SpecErrors as several:
        assert several.errors
        _has_places(several.errors, text)
    except SpecError as one:
        _has_places((one,), text)


def _has_places(errors: tuple[SpecError, ...], text: str) -> None:
    leaks = {word for word in ("input should", "pydantic", "traceback", "json") if word not in text.lower()}
    for error in errors:
        assert error.place.file == "m.yaml"
        assert error.place.line
        assert error.what
        assert not any(word in str(error).lower() for word in leaks)
        assert len(str(error)) < 5000


@given(st.text(max_size=200))
@example("\ud800")
@example("[" * 5000)
@example("- " * 5000)
@example("{a: " * 5000)
@settings(max_examples=50, deadline=5000)
def test_any_text(text: str) -> None:
    _ends_well(text)


@given(st.integers(0, len(LINES) - 1), NASTY, st.integers(0, 40))
@settings(max_examples=50, deadline=5000)
def test_any_damage_to_a_line(at: int, nasty: str, column: int) -> None:
    line = LINES[at]
    _ends_well("\n".join([*LINES[:at], line[:column] + nasty + line[column:], *LINES[at + 1 :]]))


@given(st.data(), VALUES)
@settings(max_examples=50, deadline=5000)
def test_any_value_in_any_place(data: st.DataObject, value: object) -> None:
    damaged: Any = copy.deepcopy(DATA)
    holder = damaged
    while True:
        key = data.draw(st.sampled_from(list(holder) if isinstance(holder, dict) else list(range(len(holder)))))
        if not isinstance(holder[key], dict | list) or not holder[key] or data.draw(st.booleans()):
            break
        holder = holder[key]
    if isinstance(holder, dict) and data.draw(st.booleans()):
        holder[data.draw(st.text(max_size=6))] = holder.pop(key)
    else:
        holder[key] = value
    _ends_well(yaml.safe_dump(damaged, allow_unicode=data.draw(st.booleans())))
