"""LoadSpec: what it takes, what it refuses, and that its JSON is its schema's."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from loadgen.contract import encode, schemas
from loadgen.errors import SpecError
from loadgen.spec import read_spec

SCHEMA = Draft202012Validator(schemas()["load-spec"])
URL = "http://127.0.0.1:8000/items/42"

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "url"),
    ({"url": "ftp://x/"}, "spec.url"),
    ({"url": "http:///x"}, "spec.url"),
    ({"url": URL, "conections": 1}, "did you mean 'connections'"),
    ({"url": URL, "connections": 0}, "spec.connections"),
    ({"url": URL, "connections": True}, "spec.connections"),
    ({"url": URL, "connections": 1.5}, "spec.connections"),
    ({"url": URL, "duration_s": float("nan")}, "spec.duration_s"),
    ({"url": URL, "timeout_s": 61}, "spec.timeout_s"),
    ({"url": URL, "method": "GET / HTTP/1.1\r\nx: y"}, "spec.method"),
    ({"url": URL, "headers": [["a"]]}, "spec.headers[0]"),
    ({"url": URL, "headers": [["a", "b\r\nc: d"]]}, "spec.headers[0][1]"),
    ({"url": URL, "body": "?"}, "spec.body"),
    ({"url": URL, "expect": {"body": 3}}, "spec.expect.body"),
    ({"url": URL, "expect": {"status": 99}}, "spec.expect.status"),
    ({"url": URL, "loop": "open"}, "spec.rate"),
    ({"url": URL, "rate": 5}, "spec.rate"),
    ({"url": URL, "loop": "opne", "rate": 5}, "did you mean 'open'"),
    ({"url": URL, "processes": 2}, "spec.processes"),
    ({"url": URL, "engine": "wrk", "loop": "open", "rate": 5}, "spec.engine"),
    ({"url": URL, "paths": [{"expect": None}]}, "spec.paths[0]"),
    ({"url": URL, "tls": {"verify": 1}}, "spec.tls.verify"),
    ({"url": URL, "cpus": [-1]}, "spec.cpus[0]"),
    ({"url": URL, "watch_pid": 0}, "spec.watch_pid"),
]


@pytest.mark.parametrize(("doc", "names"), REFUSED)
def test_a_mistake_is_refused_and_named(doc: dict[str, Any], names: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_spec(doc)
    assert names in str(caught.value)


def test_what_is_no_object_is_refused() -> None:
    docs: list[Any] = [None, [], "x", 3]
    for doc in docs:
        with pytest.raises(SpecError):
            read_spec(doc)


def base64_texts() -> st.SearchStrategy[str]:
    return st.binary(max_size=20).map(lambda data: base64.b64encode(data).decode())


def expects() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"status": st.integers(100, 599), "body": st.none() | base64_texts()})


texts = st.text(st.characters(codec="ascii", exclude_characters="\r\n\0"), max_size=12)
names = st.from_regex("[A-Za-z-]+", fullmatch=True)
values = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=12)
targets = st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="#")).map(lambda text: f"/{text}")
paths = st.lists(st.fixed_dictionaries({"path": targets, "expect": st.none() | expects()}), max_size=3)
documents = st.fixed_dictionaries(
    {"url": st.just(URL)},
    optional={
        "headers": st.lists(st.tuples(names, values).map(list), max_size=3),
        "body": base64_texts(),
        "paths": paths,
        "connections": st.integers(1, 1000),
        "duration_s": st.floats(0.01, 100),
        "expect": expects(),
        "cpus": st.lists(st.integers(0, 100), max_size=3),
        "watch_pid": st.none() | st.integers(1, 2**22),
        "tls": st.fixed_dictionaries({"ca": st.none() | texts, "verify": st.booleans(), "server_name": st.none()}),
    },
)


@settings(max_examples=40)
@given(documents)
def test_json_goes_round_and_fits_the_schema(doc: dict[str, Any]) -> None:
    SCHEMA.validate(doc)
    spec = read_spec(doc)
    written = json.loads(encode(spec))
    SCHEMA.validate(written)
    assert read_spec(written) == spec
