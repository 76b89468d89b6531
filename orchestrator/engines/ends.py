"""How a server's root process ended, and the line of its log that says why."""

from __future__ import annotations

import signal
from dataclasses import dataclass

LINE = 2000
"""Characters of a line that are kept: reasons have whole lines, but for one that is longer than any reader wants."""


@dataclass(frozen=True)
class Exit:
    """How a server's root process ended. `wall_ns`: the time of day that the kernel's clock showed.

    `code` is 128 and the signal's number where a signal ended it, as a shell says it; `out_of_memory`: it was the
    kernel's, for want of memory.
    """

    code: int
    wall_ns: int
    out_of_memory: bool = False

    def __str__(self) -> str:
        why = " (killed: out of memory)" if self.out_of_memory else _signalled(self.code)
        return f"ended with exit code {self.code}{why}"


def _signalled(code: int) -> str:
    try:
        return f" (signal {signal.Signals(code - 128).name})"
    except ValueError:
        return ""


def telling_line(log: str) -> str:
    """The last line that tells of an error, else the last one; "" of an empty log."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() or "not found" in line.lower()]
    line = (telling or lines or [""])[-1]
    return line if len(line) <= LINE else f"{line[:LINE]}…"


def last_lines(log: str, most: int = 2000) -> str:
    """The end of a log, at most so many characters of it, from the beginning of a line on."""
    if len(log) <= most:
        return log
    cut = log[-most:]
    _, newline, rest = cut.partition("\n")
    return rest if newline and log[-most - 1] != "\n" else cut


def words_of(end: Exit | None, log: str) -> str:
    """How a server ended and what it said last, as one reason; "" where there is neither."""
    return ": ".join(part for part in (str(end) if end else "", telling_line(log)) if part)
