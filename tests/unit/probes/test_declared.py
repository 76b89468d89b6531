"""What is declared against what an app tells: what nobody could find out is no mismatch, and what is known is one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import CheckFailed
from orchestrator.matrix.models import Declares
from orchestrator.probes.checks import NO_LOOP, compare
from orchestrator.probes.fingerprint import Fingerprint, read_fingerprint

CASES: dict[str, tuple[dict[str, object], dict[str, object], list[tuple[str, str]], list[str]]] = {
    # what is declared, what is told; then mismatches and what could not be verified
    "the same": ({"server": "uvicorn"}, {"server": "uvicorn"}, [], []),
    "another": ({"server": "uvicorn"}, {"server": "gunicorn"}, [("server", "gunicorn")], []),
    "nobody knows the server": ({"server": "nextserver"}, {"server": None}, [], ["server"]),
    "a fingerprint without the key": ({"server": "nextserver", "parser": "own"}, {}, [], ["server", "parser"]),
    "an underscore": ({"server": "mod-wsgi"}, {"server": "mod_wsgi"}, [], []),
    "dots and capitals": ({"server": "Next.Server"}, {"server": "next-server"}, [], []),
    "packed under another name": (
        {"server": "pyuwsgi"}, {"server": "uwsgi", "packages": ["pyuwsgi"]}, [], [],
    ),
    "its other name": ({"server": "uwsgi"}, {"server": "uwsgi", "packages": ["pyuwsgi"]}, [], []),
    "one that stands on another": (
        {"server": "aiowsgi"}, {"server": "waitress", "packages": ["waitress", "aiowsgi"]}, [], [],
    ),
    "packages alone": ({"server": "a"}, {"packages": ["b"]}, [("server", "b")], []),
    "no loop under WSGI is known": ({"loop": "uvloop.Loop"}, {"interface": "wsgi", "loop": None},
                                    [("loop", NO_LOOP)], []),
    "no loop under ASGI is not": ({"loop": "uvloop.Loop"}, {"interface": "asgi", "loop": None}, [], ["loop"]),
    "another loop": ({"loop": "uvloop.Loop"}, {"interface": "asgi", "loop": "trio"}, [("loop", "trio")], []),
    "no parser": ({"parser": "h11"}, {"parser": None}, [], ["parser"]),
    "no worker class": ({"worker_class": "w"}, {"worker_class": None}, [], ["worker_class"]),
    "what is not declared": ({}, {"server": "x", "loop": "y", "parser": None}, [], []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_unknown_is_unknown_and_known_is_known(name: str) -> None:
    declared, told, mismatches, unverified = CASES[name]
    found = compare(Declares.model_validate(declared), read_fingerprint(json.dumps(told).encode()),
                    keepalive=True, access_log=False)  # fmt: skip
    assert [(one.field, one.found) for one in found[0]] == mismatches
    assert list(found[1]) == unverified


def test_what_the_answers_themselves_show_is_compared_too() -> None:
    mismatches, unverified = compare(Declares(), Fingerprint(), keepalive=False, access_log=True)
    assert [(one.field, one.declared, one.found) for one in mismatches] == [
        ("keepalive", "True", "False"), ("access_log", "False", "True"),
    ]  # fmt: skip
    assert unverified == ()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(VALUES | st.dictionaries(st.sampled_from(sorted(Fingerprint.model_fields)), VALUES, max_size=4))
def test_any_json_is_a_fingerprint_or_a_sentence(value: object) -> None:
    try:
        found = read_fingerprint(json.dumps(value).encode())
    except CheckFailed as error:
        assert error.what.startswith("/fingerprint: ")
    else:
        assert isinstance(value, dict)
        assert found.told().keys() == value.keys()


@given(st.binary(max_size=40))
def test_any_bytes_are_too(body: bytes) -> None:
    try:
        read_fingerprint(body)
    except CheckFailed as error:
        assert "docs/apps.md" in error.what
