"""Files of JSON lines that grow while a bench runs: whole lines only, whatever ended the bench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def read_lines(path: Path) -> list[Line]:
    """All whole lines of a file, none where there is no file. What a killed bench left half-written is passed over."""
    if not path.exists():
        return []
    whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
    return [json.loads(text) for text in whole.splitlines() if text]


def append_line(path: Path, line: Line) -> None:
    """Add one line, in one write. A half-written line at the end is cut off first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")


def rounded(value: Any, digits: int = 6) -> Any:
    """The same value with every float in it cut to so many significant digits, for lines that people can read."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item, digits) for item in value]
    return value
