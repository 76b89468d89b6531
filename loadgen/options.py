"""Types of command-line options, for argparse."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def whole(low: int, high: int) -> Callable[[str], int]:
    """A whole number from `low` to `high`."""

    def number(text: str) -> int:
        if text.strip().removeprefix("-").isdecimal() and low <= int(text) <= high:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")

    return number


def several(number: Callable[[str], int]) -> Callable[[str], list[int]]:
    """Such numbers with commas between them."""
    return lambda text: [number(part) for part in text.split(",")]
