"""What `--help` says reaches the reader whole, and is written for people who call no function."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import typer

from loadgen import ceiling
from orchestrator.cli.app import app


def texts() -> Iterator[tuple[str, str]]:
    """Every text of `matrix COMMAND --help`, by command and option."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    for name, command in group.commands.items():
        yield name, command.help or ""
        yield from ((f"{name} {option.name}", getattr(option, "help", None) or "") for option in command.params)


TEXTS = dict(texts())


@pytest.mark.parametrize("where", [where for where in TEXTS if not where.endswith(" help")])
def test_no_part_of_a_text_is_taken_for_markup(where: str) -> None:
    """Help is read as Markdown, in which what looks like HTML is not shown; in backticks it is."""
    assert TEXTS[where]
    assert not re.search(r"<[!/\w]", re.sub(r"`[^`]*`", "", TEXTS[where]))


def test_the_help_of_the_ceiling_speaks_of_no_errors_that_python_raises(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        ceiling.main(["--help"])
    assert "Raises" not in capsys.readouterr().out
