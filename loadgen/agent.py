"""The agent: one JSON object a line in, one a line out. All contact with a server goes through it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from typing import IO, Any

from loadgen import __version__, lifecycle, proc, spec
from loadgen.client import fetch, request_from_json, wait
from loadgen.errors import LoadgenError, SpecError
from loadgen.facts import facts
from loadgen.result import SCHEMA
from loadgen.run import load
from loadgen.spec import Json, LoadSpec
from loadgen.steady import steady


def _hello(_doc: Json) -> Json:
    return {"ok": True, "schema": SCHEMA, "version": __version__, "facts": facts()}


def _wait(doc: Json) -> Json:
    expect = spec.EXPECT("expect", doc.get("expect", {}))
    deadline_s = spec.number(0.001, 3600)("deadline_s", doc.get("deadline_s", 10))
    return wait(request_from_json(doc.get("request")), expect, deadline_s)


def _fetch(doc: Json) -> Json:
    requests = doc.get("requests")
    if not isinstance(requests, list):
        raise SpecError("requests: not a list")
    keep_alive = spec.flag("keep_alive", doc.get("keep_alive", True))
    answers = fetch([request_from_json(request) for request in requests], keep_alive=keep_alive)
    return {"ok": True, "answers": answers}


def _load(doc: Json) -> Json:
    begin = doc.get("begin_ns")
    if begin is not None:
        spec.number(0, kind=int)("begin_ns", begin)
    return {"ok": True, "result": load(LoadSpec.from_json(doc.get("spec")), begin)}


def _sample(doc: Json) -> Json:
    pid = spec.number(1, kind=int)("pid", doc.get("pid"))
    pids = proc.tree(pid)
    reading = proc.usage(pids)
    sample = proc.between({}, reading, proc.memory(reading))
    if sample is None:
        raise SpecError(f"pid: there is no process {pid} to be read here")
    return {"ok": True, "sample": {**sample, "wanting": proc.wanting(pids)}}


OPERATIONS: dict[str, Callable[[Json], Json]] = {
    "hello": _hello,
    "wait": _wait,
    "fetch": _fetch,
    "load": _load,
    "sample": _sample,
    **lifecycle.OPERATIONS,
    "steady": steady,
}


def answer(line: str) -> Json:
    """The answer to one line. Whatever is wrong with it, or goes wrong, is an answer too."""
    try:
        doc = json.loads(line)
        if not isinstance(doc, dict) or doc.get("op") not in OPERATIONS:
            raise SpecError(f"op: none of {', '.join([*OPERATIONS, 'bye'])}: {line:.100}")
        return OPERATIONS[doc["op"]](doc)
    except json.JSONDecodeError as error:
        return _error("json", str(error))
    except LoadgenError as error:
        return _error(error.kind, str(error))
    except Exception as error:  # the agent outlives its own mistakes; the caller reports them
        return _error("internal", f"{type(error).__name__}: {error}")


def _error(kind: str, message: str) -> Json:
    return {"ok": False, "error": {"kind": kind, "message": message}}


def serve(lines: Iterable[str], out: IO[str]) -> None:
    """Answer line after line, until `bye` or the end of the input."""
    for line in lines:
        if not line.strip():
            continue
        if _is_bye(line):
            break
        out.write(json.dumps(answer(line), separators=(",", ":")) + "\n")
        out.flush()


def _is_bye(line: str) -> bool:
    try:
        doc: Any = json.loads(line)
    except json.JSONDecodeError:
        return False
    return isinstance(doc, dict) and doc.get("op") == "bye"


def main(_argv: list[str]) -> int:
    """Serve standard input. SIGTERM and SIGINT end the process at once, also as PID 1."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    serve(iter(sys.stdin.readline, ""), sys.stdout)
    return 0
