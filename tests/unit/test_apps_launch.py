"""The command line of the launchers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "images" / "apps"))

import launch.options as options
import raw_wsgi


def parse(monkeypatch: pytest.MonkeyPatch, line: str, *, tls: bool = False) -> options.Options:
    monkeypatch.setattr(sys, "argv", ["serve", *line.split()])
    return options.parse("bjoern", ["wsgi"], tls=tls)


def test_a_whole_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "--host 0.0.0.0 --port 9 --workers 2 --threads 1 --interface wsgi --certfile c --keyfile k raw_wsgi:app"
    expected = options.Options(raw_wsgi.app, "0.0.0.0", 9, 2, "wsgi", "c", "k")
    assert parse(monkeypatch, line, tls=True) == expected


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("--threads 4 raw_wsgi:app", "--threads"),
        ("--interface asgi raw_wsgi:app", "--interface"),
        ("--workers 0 raw_wsgi:app", "--workers 0: at least 1 is needed"),
        ("--keyfile k raw_wsgi:app", "--certfile and --keyfile go together"),
        ("--certfile c --keyfile k raw_wsgi:app", "bjoern has no TLS"),
        ("raw_wsgi", "raw_wsgi: the application's name is missing"),
        ("raw_wsgi:nowhere", "raw_wsgi:nowhere: module 'raw_wsgi' has no attribute"),
        ("no_such_module:app", "no_such_module:app: No module named"),
    ],
)
def test_what_cannot_be_done_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, complaint: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(monkeypatch, line)
    assert complaint in capsys.readouterr().err
