"""The agent: one JSON object a line in, one a line out. All contact with a server goes through it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any

import msgspec
from msgspec import Struct

from loadgen import __version__, contract, lifecycle, proc
from loadgen.client import Outgoing, fetch, wait
from loadgen.contract import (
    AnyCall,
    Bye,
    Call,
    Failed,
    Fetch,
    Fetched,
    Greeting,
    Hello,
    Load,
    Loaded,
    Mistake,
    Sample,
    Sampled,
    Steady,
    TakeSample,
    Wait,
    Waited,
)
from loadgen.decode import decode
from loadgen.errors import LoadgenError, SpecError
from loadgen.facts import facts
from loadgen.run import load
from loadgen.spec import checked, checked_request
from loadgen.steady import steady


def _hello(_: Hello) -> Greeting:
    return Greeting(schema=contract.VERSION, version=__version__, facts=facts())


def _wait(call: Wait) -> Waited:
    return wait(Outgoing(checked_request(call.request)), call.expect, call.deadline_s)


def _fetch(call: Fetch) -> Fetched:
    requests = [checked_request(request, f"requests[{at}]") for at, request in enumerate(call.requests)]
    return Fetched(answers=tuple(fetch([Outgoing(request) for request in requests], keep_alive=call.keep_alive)))


def _load(call: Load) -> Loaded:
    return Loaded(result=load(checked(call.spec), call.begin_ns))


def _sample(call: TakeSample) -> Sampled:
    pids = proc.tree(call.pid)
    reading = proc.usage(pids)
    use = proc.between({}, reading, proc.memory(reading))
    if use is None:
        raise SpecError(f"pid: there is no process {call.pid} to be read here")
    return Sampled(sample=Sample(**msgspec.structs.asdict(use), wanting=proc.wanting(pids)))


OPERATIONS: Mapping[type[Call[Any]], Callable[[Any], Struct]] = {
    Hello: _hello,
    Wait: _wait,
    Fetch: _fetch,
    Load: _load,
    TakeSample: _sample,
    **lifecycle.OPERATIONS,
    Steady: steady,
}


def answer(line: str) -> Struct:
    """The answer to one line. Whatever is wrong with it, or goes wrong, is an answer too."""
    try:
        call = decode(line, AnyCall)
        return OPERATIONS[type(call)](call)
    except msgspec.DecodeError as error:
        return _failed("json", str(error))
    except LoadgenError as error:
        return _failed(error.kind, str(error))
    except Exception as error:  # the agent outlives its own mistakes; the caller reports them
        return _failed("internal", f"{type(error).__name__}: {error}")


def _failed(kind: str, message: str) -> Failed:
    return Failed(error=Mistake(kind, message))


def serve(lines: Iterable[str], out: IO[str]) -> None:
    """Answer line after line, until `bye` or the end of the input."""
    for line in lines:
        if not line.strip():
            continue
        if _is_bye(line):
            break
        out.write(contract.encode(answer(line)) + "\n")
        out.flush()


def _is_bye(line: str) -> bool:
    try:
        msgspec.json.decode(line, type=Bye)
    except msgspec.DecodeError:
        return False
    return True


def main(_argv: list[str]) -> int:
    """Serve standard input. SIGTERM and SIGINT end the process at once, also as PID 1."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    serve(iter(sys.stdin.readline, ""), sys.stdout)
    return 0
