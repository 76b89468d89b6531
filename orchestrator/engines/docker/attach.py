"""The engine's attach stream as a channel to an agent in a container."""

from __future__ import annotations

import contextlib
import select
import struct
import time
from typing import Any


class AttachedChannel:
    """Standard input and output of a container: what comes in has frames with a header of 8 bytes.

    `stream` is what the SDK's `attach_socket` gives. The form of a frame: Engine API, "Attach to a container".
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._socket: Any = getattr(stream, "_sock", stream)
        self._lines = b""

    def send(self, line: str) -> None:
        self._socket.sendall(line.encode() + b"\n")

    def receive(self, timeout_s: float) -> str:
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._lines:
            _, size = struct.unpack(">B3xL", self._exactly(8, deadline))
            self._lines += self._exactly(size, deadline)
        line, _, self._lines = self._lines.partition(b"\n")
        return line.decode()

    def _exactly(self, size: int, deadline: float) -> bytes:
        found = b""
        while len(found) < size:
            if not select.select([self._socket], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            more = self._socket.recv(size - len(found))
            if not more:
                raise ConnectionResetError("its container ended")
            found += more
        return found

    def close(self) -> None:
        """The SDK hangs its HTTP response on the stream: closed after it, that complains when it is collected."""
        for part in (getattr(self._stream, "_response", None), self._stream):
            with contextlib.suppress(OSError, ValueError):
                if part is not None:
                    part.close()
