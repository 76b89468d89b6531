"""Talking to the load generator's agent: one JSON line there, one back, over whatever channel an engine gives."""

from __future__ import annotations

import json
import threading
from typing import Any, Protocol

from orchestrator.errors import AgentGone, LoadFailed

Answer = dict[str, Any]


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

    def call(self, op: str, *, timeout_s: float = 30.0, **fields: Any) -> Answer:
        """Ask and wait for the answer, `ok` true or not. Raises AgentGone, or LoadFailed where it is silent."""
        with self._lock:
            try:
                self._channel.send(json.dumps({"op": op, **fields}))
                answer = json.loads(self._channel.receive(timeout_s))
            except TimeoutError as error:
                raise LoadFailed(f"the load generator did not answer {op!r} within {timeout_s:.0f} s") from error
            except (OSError, ValueError) as error:
                raise AgentGone(f"the load generator went away during {op!r}: {error}") from error
        if not isinstance(answer, dict):
            raise LoadFailed(f"the load generator answered {op!r} with something that is no object")
        return answer

    def ask(self, op: str, *, timeout_s: float = 30.0, **fields: Any) -> Answer:
        """`call`, and LoadFailed where the answer is not ok."""
        answer = self.call(op, timeout_s=timeout_s, **fields)
        if not answer.get("ok"):
            error = answer.get("error") or {}
            raise LoadFailed(f"{op}: {error.get('message') or answer}")
        return answer

    def close(self) -> None:
        self._channel.close()
