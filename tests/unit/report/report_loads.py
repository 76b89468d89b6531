"""Documents of the load generator as hypothesis draws them from their own schema: all that it allows, and no less."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec
from hdrh.histogram import HdrHistogram
from hypothesis import strategies as st

from loadgen.contract import DIGITS, HIGHEST_US, LOWEST_US, LoadResult, schemas

Schema = Mapping[str, Any]
Draws = st.SearchStrategy[Any]
DEFS: Mapping[str, Schema] = schemas()["load-result"]["$defs"]


@st.composite
def _histograms(draw: st.DrawFn) -> str:
    """Text that decodes: of any samples, none too; the schema cannot say so."""
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    samples = st.tuples(st.integers(0, HIGHEST_US), st.integers(1, 100_000))
    for value, count in draw(st.lists(samples, max_size=4)):
        histogram.record_value(value, count)
    return str(histogram.encode().decode())


KNOWN: Mapping[str, Draws] = {"histogram": _histograms()}
NAMES = st.sampled_from(["cpu0", "cpu1"]) | st.text(max_size=4)
PERCENTS = st.sampled_from(["50", "99", "99.9"])


@cache  # one made anew is checked anew at each draw, which takes longer than the draw
def documents(most: float = 1e12) -> Draws:
    """Valid documents as records keep them, without their spec, numbers up to `most`; small ones and 0 are as likely.

    What old records lack is left out now and then: the schema does not require it.
    """
    schema = DEFS["LoadResult"]
    fields = {name: one for name, one in schema["properties"].items() if name != "spec"}
    return _of({**schema, "properties": fields}, most).map(lambda drawn: msgspec.convert(drawn, LoadResult))


def _of(schema: Schema, most: float) -> Draws:
    """The keywords that the schema uses; another one is a mistake here, so that none is passed over."""
    if "$ref" in schema:
        return _of(DEFS[schema["$ref"].rpartition("/")[2]], most)
    if "anyOf" in schema:
        return st.one_of([_of(one, most) for one in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds: Mapping[str, Callable[[], Draws]] = {
        "object": lambda: _object(schema, most),
        "array": lambda: st.lists(_of(schema["items"], most), min_size=schema.get("minItems", 0), max_size=3),
        "integer": lambda: _numbers(st.integers, schema.get("minimum"), min(int(most), schema.get("maximum", most))),
        "number": lambda: _numbers(st.floats, schema.get("minimum"), most),
        "string": lambda: st.text(max_size=5),
        "boolean": st.booleans,
        "null": st.none,
    }
    return kinds[schema["type"]]()


def _numbers(kind: Any, least: float | None, most: float) -> Draws:
    """Up to `most`, and as often like those of slices of a second; down to 1 / `most`, or 0."""
    low = -int(most) if least is None else int(least)
    drawn: Draws = kind(low, most) | kind(low, min(2000, most)) | st.just(1)
    return drawn.map(lambda number: 0 * number if 0 < number < 1 / most else number)


def _object(schema: Schema, most: float) -> Draws:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    drawn = {name: KNOWN[name] if name in KNOWN else _of(one, most) for name, one in properties.items()}
    required = {name: drawn.pop(name) for name in schema.get("required", ())}
    others = schema.get("additionalProperties", False)
    if not isinstance(others, dict):
        return st.fixed_dictionaries(required, optional=drawn)
    return st.dictionaries(_names(schema.get("propertyNames", {})), _of(others, most), max_size=3)


def _names(schema: Schema) -> Draws:
    """The names that an object with any number of fields may have."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    return PERCENTS if "pattern" in schema else NAMES
