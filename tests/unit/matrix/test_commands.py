"""Commands are read as a shell reads them, over any number of lines, and what only a shell could do is refused."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.errors import SpecError, SpecErrors
from orchestrator.matrix.command import one_line, shell_mistake
from orchestrator.matrix.loading import parse_matrix
from orchestrator.matrix.resolved import PLACEHOLDERS, Variant, catalogue, tuned

CASES = Path(__file__).parents[2] / "cases"
SMALL = (CASES / "small.matrix.yaml").read_text(encoding="utf-8")
RUN = "run: waitress-serve --host={host} --port={port} --threads={threads} {options} {app}"
GIVEN = {"host": "127.0.0.1", "port": "8000", "app": "flask_app:app", "threads": "4"}
VALUES = dict.fromkeys(PLACEHOLDERS, "x") | GIVEN
PIECES = st.sampled_from([
    "a", "b-c", " ", "\t", "\\\n", "\\\r\n", "'", '"', "\\", "\\\\", "\\'", '\\"', "=", "{", "}", "é",
])  # fmt: skip


def _variant(run: str, more: str = "") -> Variant:
    (variant,) = catalogue(parse_matrix(SMALL.replace(RUN, f"{run}{more}")).matrix)
    return variant


def _as_sh_reads(text: str) -> list[str] | None:
    """The words, by a real shell; None where it calls the text unfinished."""
    command = f"printf '%s\\0' {text}".encode()
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False)
    return done.stdout.decode().split("\0")[:-1] if done.returncode == 0 else None


def _as_read_here(text: str) -> list[str] | None:
    try:
        return shlex.split(one_line(text)) or [""]  # printf without words prints one that is empty
    except ValueError:
        return None


def test_launch_command_over_lines_that_end_in_backslashes_is_one_line() -> None:
    text = (CASES / "matrix-good" / "backslashes.yaml").read_text(encoding="utf-8")
    (variant,) = catalogue(parse_matrix(text).matrix)
    assert variant.run == "uvicorn --host {host} --port {port} --no-access-log {app}"
    assert variant.argv(VALUES, tls=False) == (
        "uvicorn", "--host", "127.0.0.1", "--port", "8000", "--no-access-log", "flask_app:app",
    )  # fmt: skip


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_part_of_a_command_may_go_over_lines(newline: str) -> None:
    run = """run: |
      waitress-serve \\
        --host={host} --port={port}
        --threads={threads} \\

      {options} \\
      {app}"""
    more = """
    options: |
      --a \\
      1
    tls: |
      --key {key} \\
      --cert {cert}
    timeout: |
      --limit \\
      {timeout}
    shutdown:
      options: |
        --grace \\
        {grace} \\
"""
    variant = _variant(run.replace("\n", newline), more.replace("\n", newline))
    assert "\n" not in variant.run + variant.options + variant.tls + variant.timeout
    assert tuned(variant, 9).argv(VALUES, tls=True) == (
        "waitress-serve", "--host=127.0.0.1", "--port=8000", "--threads=4", "--a", "1", "--grace", "9",
        "--key", "x", "--cert", "x", "flask_app:app",
    )  # fmt: skip
    assert variant.timeout == "--limit {timeout}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a \\\n b", ["a", "b"]),
        ("a\\\nb", ["ab"]),
        ("a\\\r\nb", ["ab"]),
        ("a\nb\r\nc\td", ["a", "b", "c", "d"]),
        ('a "b \\\nc"', ["a", "b c"]),
        ("a 'b \\\nc'", ["a", "b \\\nc"]),
        ('a "b\nc"', ["a", "b\nc"]),
        ("a \\\\\nb", ["a", "\\", "b"]),
        ("a \\\n", ["a"]),
        ("a b\\ ", ["a", "b "]),
        ("a '{{\"b\": 1}}'", ["a", '{{"b": 1}}']),
    ],
)
def test_words_of_lines(text: str, words: list[str]) -> None:
    assert shlex.split(one_line(text)) == words


@given(st.lists(PIECES, max_size=12).map("".join))
@example("\\\n\\\n a")
@example('"\\\\\\\n"')
@settings(max_examples=150, deadline=5000)
def test_any_command_is_read_as_a_real_shell_reads_it(text: str) -> None:
    text = text.replace("\r\n", "\n")
    line_break = "\n" in re.sub(r"\\.", "", text, flags=re.S)
    if line_break or (text.endswith("\\") and _as_read_here(text) is None):
        return  # where a shell ends the command, or keeps a last backslash that is a mistake here
    assert _as_read_here(text) == _as_sh_reads(text)


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=2000)
def test_one_line_stays_one_line(text: str) -> None:
    try:
        line = one_line(text)
    except ValueError:
        assert "\0" in text
        return
    assert one_line(line) == line
    shell_mistake(line, begins=True)


@pytest.mark.parametrize(
    "text", ["--filter='a | b'", "--json='{\"a\": 1}'", r"--x \| y", "-k a&b=1", "--cost 5$", "--at=1", "a#b"]
)
def test_quoted_operators_are_no_mistake(text: str) -> None:
    assert shell_mistake(one_line(text), begins=False) is None


@pytest.mark.parametrize(
    "word", ["|", "||", "&&", "&", ";", ">", ">>log", "<in", "2>&1", "&>log", "$HOME", "$(id)", "`id`", "(", "#x"]
)
def test_words_for_a_shell_are_told(word: str) -> None:
    found = shell_mistake(one_line(f"a \\\n {word} b"), begins=False)
    assert found is not None
    assert found[0] == word


@given(st.text(max_size=40))
@settings(max_examples=60, deadline=3000)
def test_any_run_is_a_command_or_a_mistake_in_its_line(text: str) -> None:
    quoted = yaml.safe_dump(text + " {host} {port} {threads} {options} {app}", default_style='"', width=99999).strip()
    line = SMALL.splitlines().index(f"    {RUN}") + 1
    try:
        variant = _variant(f"run: {quoted}")
    except SpecError as error:
        errors = error.errors if isinstance(error, SpecErrors) else (error,)
        assert {one.place.line for one in errors} == {line}
        return
    assert variant.argv(VALUES, tls=False)
