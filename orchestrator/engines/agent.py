"""Talking to the load generator's agent: one JSON line there, one back, over whatever channel an engine gives."""

from __future__ import annotations

import threading
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from loadgen.contract import Call, Failed, decode_answer, encode, operation
from orchestrator.errors import AgentGone, LoadFailed

A = TypeVar("A", bound=Struct)


class Channel(Protocol):
    """A line-wise connection to `python -m loadgen agent`."""

    def send(self, line: str) -> None:
        """Raises OSError where the agent is gone."""

    def receive(self, timeout_s: float) -> str:
        """The next line. Raises TimeoutError, or OSError where the agent is gone."""

    def close(self) -> None: ...


class Agent:
    """The agent of one server. Calls are serialised: an agent does one thing at a time."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()

    def call(self, call: Call[A], *, timeout_s: float = 30.0) -> A | Failed:
        """Ask and wait for the answer, or for what the agent says of why there is none.

        Raises AgentGone, and LoadFailed where it is silent or answers something else.
        """
        op = operation(call)
        with self._lock:
            try:
                self._channel.send(encode(call))
                return decode_answer(self._channel.receive(timeout_s), call)
            except TimeoutError as error:
                raise LoadFailed(f"the load generator did not answer {op!r} within {timeout_s:.0f} s") from error
            except msgspec.ValidationError as error:
                raise LoadFailed(f"{op}: the load generator's answer is not what it should be: {error}") from error
            except (OSError, ValueError) as error:
                raise AgentGone(f"the load generator went away during {op!r}: {error}") from error

    def ask(self, call: Call[A], *, timeout_s: float = 30.0) -> A:
        """`call`, and LoadFailed where the agent could not do it."""
        answer = self.call(call, timeout_s=timeout_s)
        if isinstance(answer, Failed):
            raise LoadFailed(f"{operation(call)}: {answer.error.message}")
        return answer

    def close(self) -> None:
        self._channel.close()
