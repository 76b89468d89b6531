"""Wherever the program counts for people: one is told in the singular, and an empty list is not announced."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.cli import app as cli
from orchestrator.cli.images import images_summary
from orchestrator.engines.docker.inventory import Held
from orchestrator.engines.memory import MemoryEngine
from orchestrator.images.plan import ROOT

SUITE = """
suites:
  alone:
    baseline: single/plain
    axes: {server: single, app: flask, connections: 1}
    schedule: {rounds: 1, slices: 1, slice_s: 0.5}
"""
MORE = """  more:
    baseline: single/plain
    axes: {server: single, app: flask}
    schedule: {rounds: 3, slices: 2, slice_s: 0.5}
"""
SLIP = re.compile(r"(?<![\d.,/])1 (?:cell|image|round|slice|record|server|container|run|stage|connection)s\b")
Say = Callable[..., str]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Say]:
    """All that the program says to a command, on a matrix of one cell and on the memory engine."""
    file = tmp_path / "m.yaml"
    catalogue = (ROOT / "tests/cases/four-servers.matrix.yaml").read_text(encoding="utf-8")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(cli, "choose_engine", lambda *_: MemoryEngine())

    def go(*arguments: str, more: str = "") -> str:
        file.write_text(catalogue + SUITE + more, encoding="utf-8")
        of_file = [] if arguments[0] == "upgrade" else ["--file", str(file)]
        monkeypatch.setattr(sys, "argv", ["matrix", *arguments, *of_file])
        with pytest.raises(SystemExit):
            cli.main()
        captured = capsys.readouterr()
        return captured.out + captured.err

    yield go


def test_the_listing_of_one_cell(say: Say) -> None:
    told = say("list", "alone")
    assert "1 cell in 1 image; 1 round of 1 slice of 0.5 s: about" in told
    assert "Other suites" not in told
    assert "Measure this one: matrix run alone" in told


def test_the_listing_names_the_other_suites_and_the_rounds_that_may_be_added(say: Say) -> None:
    told = say("list", "more", more=MORE)
    assert "Other suites: alone. Measure this one: matrix run more" in told
    assert "3 rounds of 2 slices of 0.5 s, up to 5 rounds where they lie far apart: about" in told


def test_a_check_a_run_and_an_upgrade_of_one_cell(say: Say, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    told = [say("list", "alone", "--check"), say("run", "alone", "--dry-run", "--results", str(folder))]
    told += [say("upgrade", *map(str, folder.iterdir()))]
    assert "the server works" in told[0]
    assert "1 record in" in told[1]
    assert told[2].rstrip().endswith(": 1 record")
    assert not SLIP.findall("\n".join(told))


def test_one_image_and_one_stage() -> None:
    assert not SLIP.findall(images_summary([Held("i", ("a:1",), "server", 10, ()), Held("s", (), "stage", 10, ())]))
