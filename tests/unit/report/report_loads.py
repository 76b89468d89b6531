"""Documents of the load generator as hypothesis draws them from their own schema: all that it allows, and no less."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from hdrh.histogram import HdrHistogram
from hypothesis import strategies as st

from orchestrator.images.plan import ROOT
from orchestrator.judge import latency

Schema = Mapping[str, Any]
Draws = st.SearchStrategy[Any]
SCHEMA: Schema = json.loads((ROOT / "loadgen" / "schema" / "result.json").read_text(encoding="utf-8"))
LATER = ("throttled", "unanswered")
"""What documents in old records lack."""


@st.composite
def _histograms(draw: st.DrawFn) -> str:
    """Text that decodes: of any samples, none too; the schema cannot say so."""
    histogram = HdrHistogram(latency.LOWEST_US, latency.HIGHEST_US, latency.DIGITS)
    samples = st.tuples(st.integers(0, latency.HIGHEST_US), st.integers(1, 100_000))
    for value, count in draw(st.lists(samples, max_size=4)):
        histogram.record_value(value, count)
    return str(histogram.encode().decode())


KNOWN: Mapping[str, Draws] = {"histogram": _histograms()}
NAMES = st.sampled_from(["cpu0", "cpu1"]) | st.text(max_size=4)
PERCENTS = st.sampled_from(["50", "99", "99.9"])


@cache  # one made anew is checked anew at each draw, which takes longer than the draw
def documents(most: float = 1e12) -> Draws:
    """Valid documents as records keep them, numbers up to `most`; small ones and 0 are as likely."""
    return st.builds(_without, _of(SCHEMA, most), st.sets(st.sampled_from(LATER)))


def _without(document: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in {*names, "spec"}}


def _of(schema: Schema, most: float) -> Draws:
    """The keywords that the schema uses; another one is a mistake here, so that none is passed over."""
    if "$ref" in schema:
        return _of(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], most)
    if "anyOf" in schema:
        return st.one_of([_of(one, most) for one in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds: Mapping[str, Callable[[], Draws]] = {
        "object": lambda: _object(schema, most),
        "array": lambda: st.lists(_of(schema["items"], most), min_size=schema.get("minItems", 0), max_size=3),
        "integer": lambda: _numbers(st.integers, schema.get("minimum"), int(most)),
        "number": lambda: _numbers(st.floats, schema.get("minimum"), most) | st.integers(0, 3),
        "string": lambda: st.text(max_size=5),
        "boolean": st.booleans,
        "null": st.none,
    }
    return kinds[schema["type"]]()


def _numbers(kind: Any, least: float | None, most: float) -> Draws:
    """Up to `most`, and as often like those of slices of a second; down to 1 / `most`, or 0."""
    low = -int(most) if least is None else int(least)
    drawn: Draws = kind(low, most) | kind(low, 2000) | st.just(1)
    return drawn.map(lambda number: 0 * number if 0 < number < 1 / most else number)


def _object(schema: Schema, most: float) -> Draws:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    drawn = {name: KNOWN[name] if name in KNOWN else _of(one, most) for name, one in properties.items()}
    required = {name: drawn.pop(name) for name in schema.get("required", ())}
    others = schema.get("additionalProperties", False)
    if not isinstance(others, dict):
        return st.fixed_dictionaries(required, optional=drawn)
    return st.dictionaries(PERCENTS if "propertyNames" in schema else NAMES, _of(others, most), max_size=3)
