"""What is counted while load runs."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field

from loadgen.contract import ErrorKind, FirstError


@dataclass(frozen=True)
class Silent:
    """What nobody answered while it was counted.

    `connections`: those that were asked before the stretch began and had no answer until it ended; one that was opened
    again without an answer is the same connection. `oldest_ns`: the age, at the stretch's end, of the request that was
    open for longest, counted from when it was sent (open loop: was due); None where none was open.
    """

    connections: int
    oldest_ns: int | None


@dataclass
class Tally:
    """What was counted since the stretch began: times in ns, `sent` and `received` in bytes."""

    latencies: array[int] = field(default_factory=lambda: array("Q"))
    services: array[int] = field(default_factory=lambda: array("Q"))
    errors: Counter[ErrorKind] = field(default_factory=Counter)
    first_error: FirstError | None = None
    resent: int = 0
    handshakes: int = 0
    resumed: int = 0
    sent: int = 0
    received: int = 0
