"""What is counted while load runs."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """What was counted since the stretch began: times in ns, `sent` and `received` in bytes."""

    latencies: array[int] = field(default_factory=lambda: array("Q"))
    services: array[int] = field(default_factory=lambda: array("Q"))
    errors: Counter[str] = field(default_factory=Counter)
    first_error: tuple[str, str] | None = None
    resent: int = 0
    handshakes: int = 0
    resumed: int = 0
    sent: int = 0
    received: int = 0
