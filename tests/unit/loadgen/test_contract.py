"""The contract of load generator and orchestrator: what it reads, what it refuses, and its published schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from loadgen import agent, contract
from loadgen.contract import AnyCall, Failed, Greeting, LoadResult, answer_type, decode_answer, encode, operation
from loadgen.decode import decode
from loadgen.errors import SpecError
from tests.unit.loads import FLAWLESS, load_of

ROOT = Path(__file__).parents[3]
CALLS: tuple[type[contract.Call[Any]], ...] = get_args(AnyCall)
ADDED = ("warmup_s", "unanswered", "throttled")
"""Fields that the documents of earlier versions lack."""


@pytest.mark.parametrize("name", contract.schemas())
def test_published_schemas_are_not_stale(name: str) -> None:
    published = (ROOT / "docs" / f"{name}.schema.json").read_text(encoding="utf-8")
    current = json.loads(json.dumps(contract.schemas()[name]))
    assert json.loads(published) == current, "make schemas"


def test_every_call_is_an_operation_of_the_agent_and_names_its_answer() -> None:
    assert {*CALLS} == {*agent.OPERATIONS, contract.Bye}
    for kind in CALLS:
        (base,) = kind.__orig_bases__  # type: ignore[attr-defined]
        assert issubclass(get_args(base)[0], msgspec.Struct)


def test_a_call_goes_over_the_line_and_back() -> None:
    call = contract.Clock()
    assert (operation(call), answer_type(call)) == ("clock", contract.Clocks)
    assert decode(encode(call), AnyCall) == call


def test_an_answer_is_of_its_type_or_a_failure_or_refused() -> None:
    call = contract.Hello()
    greeting = Greeting(schema=contract.VERSION, version="1", facts=contract.Machine())
    assert decode_answer(encode(greeting), call) == greeting
    failed = Failed(error=contract.Mistake("spec", "no"))
    assert decode_answer(encode(failed), call) == failed
    with pytest.raises(msgspec.ValidationError, match=r"\$\.version"):
        decode_answer(json.dumps({"schema": "", "version": 3, "facts": {}}), call)


def test_a_document_of_an_earlier_version_is_read() -> None:
    written = {name: value for name, value in FLAWLESS.items() if name not in ADDED}
    read = msgspec.convert(written, LoadResult)
    assert [getattr(read, name) for name in ADDED] == [None] * len(ADDED)
    assert read.server is not None
    assert (read.server.born, read.server.ended_s, read.server.limits.pids) == (None, None, msgspec.UNSET)


def test_a_document_of_a_later_version_is_read() -> None:
    assert msgspec.convert({**FLAWLESS, "new": {"in": 2030}}, LoadResult) == load_of()


def test_no_limit_and_an_unknown_one_stay_apart() -> None:
    limits = contract.KernelLimits(pids=None)
    assert encode(limits) == '{"pids":null}'
    assert msgspec.json.decode(encode(limits), type=contract.KernelLimits) == limits


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no such operation": ({"op": "lood"}, "op: none of hello, wait, fetch, load,"),
    "nearly an operation": ({"op": "lood"}, "'lood'; did you mean 'load'?"),
    "a field too many": ({"op": "load", "spec": {"url": "http://h/", "conections": 1}},
                         "spec: there is no field 'conections'; did you mean 'connections'?"),
    "a field of a call": ({"op": "fetch", "requests": [], "keepalive": True}, "did you mean 'keep_alive'?"),
    "a value that is none of a few": ({"op": "load", "spec": {"url": "http://h/", "loop": "opne"}},
                                      "spec.loop: none of closed, open: 'opne'; did you mean 'open'?"),
    "a number out of range": ({"op": "sample", "pid": 0}, "pid: expected `int` >= 1"),
    "deep inside": ({"op": "fetch", "requests": [{"url": "http://h/", "tls": {"verify": 1}}]},
                    "requests[0].tls.verify: expected `bool`, got `int`"),
    "a field too few": ({"op": "wait"}, "missing required field `request`"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_place_and_the_nearest_right_one(name: str) -> None:
    question, says = MISTAKES[name]
    with pytest.raises(SpecError) as caught:
        decode(json.dumps(question), AnyCall)
    assert says in str(caught.value)
