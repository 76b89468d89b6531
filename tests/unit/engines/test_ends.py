"""How a server ended and what it said last: whole lines, and the one that tells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engines.ends import LINE, Exit, last_lines, telling_line, words_of


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (Exit(0, 0), "ended with exit code 0"),
        (Exit(3, 0), "ended with exit code 3"),
        (Exit(137, 0, out_of_memory=True), "ended with exit code 137 (killed: out of memory)"),
        (Exit(137, 0), "ended with exit code 137 (signal SIGKILL)"),
        (Exit(139, 0), "ended with exit code 139 (signal SIGSEGV)"),
        (Exit(255, 0), "ended with exit code 255"),
    ],
)
def test_an_end_in_words(end: Exit, words: str) -> None:
    assert str(end) == words


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", ""),
        ("starting\nImportError: no x\nbye\n", "ImportError: no x"),
        ("starting\nsh: nextserver: not found", "sh: nextserver: not found"),
        ("starting\n\n  bye  \n", "bye"),
    ],
)
def test_the_line_that_tells(log: str, line: str) -> None:
    assert telling_line(log) == line


def test_a_reason_keeps_its_whole_line() -> None:
    line = "OSError: cannot load library " + "'/opt/venv/lib/python3.13/site-packages/x.so' " * 30
    assert words_of(Exit(1, 0), f"{line}\n") == f"ended with exit code 1: {line.strip()}"
    assert telling_line("error " + "x" * 10_000).endswith("x…")
    assert len(telling_line("error " + "x" * 10_000)) == LINE + 1


@given(st.lists(st.text(alphabet="ab ", max_size=12), max_size=12), st.integers(1, 60))
def test_the_end_of_a_log_has_whole_lines(lines: list[str], most: int) -> None:
    log = "\n".join(lines)
    end = last_lines(log, most)
    assert log.endswith(end)
    assert len(end) <= most
    whole = len(log) == len(end) or log[-len(end) - 1] == "\n" or not end
    assert whole or "\n" not in log[-most:]
