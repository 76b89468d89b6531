"""`matrix list --check`: each launch once, a line each, exit code 1 where one would not be measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from orchestrator.cli import app as cli
from orchestrator.engines.memory import Behaviour, MemoryEngine, MemoryServer
from orchestrator.engines.protocol import Launch, Seat

WAITRESS = "waitress/threads"
Check = Callable[..., tuple[int, list[str], MemoryEngine]]


class Watched(MemoryEngine):
    closed = 0

    def close(self) -> None:
        self.closed += 1


class Interrupted(Watched):
    def start(self, launch: Launch, seat: Seat | None = None) -> MemoryServer:
        raise KeyboardInterrupt


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Check]:
    """Runs `matrix list smoke --check` on the memory engine: exit code, lines, and the engine."""

    def go(behaviours: Mapping[str, Behaviour] | None = None, kind: type[Watched] = Watched) -> Any:
        engine = kind(behaviours)
        monkeypatch.setattr(cli, "choose_engine", lambda *_: engine)
        monkeypatch.setattr("sys.argv", ["matrix", "list", "smoke", "--check"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert engine.closed == 1
        assert engine.started == engine.stopped
        return ended.value.code or 0, capsys.readouterr().out.splitlines(), engine

    yield go


def test_what_works_is_told_with_what_runs(check: Check) -> None:
    code, lines, engine = check()
    assert (code, engine.started) == (0, 2)
    assert lines == [
        "OK      uvicorn/standard·slim·wheel·py3.13·raw-asgi·w1: uvicorn, loop uvloop.Loop, parser httptools, "
        "keeps connections, ready in 0.10 s",
        "OK      waitress/threads·slim·wheel·py3.13·raw-wsgi·w1·t4: waitress, parser waitress, keeps connections, "
        "ready in 0.10 s",
    ]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (Behaviour(install_error="no ev.h"), "build_error: no ev.h"),
        (Behaviour(start_error="no module"), "no module"),
        (Behaviour(fingerprint={"server": "gunicorn"}), "not as declared: server is gunicorn, declared waitress"),
        (Behaviour(answers={"/items/42": (500, b"")}), "/items/42: status 500 Internal Server Error, body b''"),
    ],
)
def test_what_does_not_work_is_told_with_its_reason_and_the_others_go_on(
    behaviour: Behaviour, words: str, check: Check
) -> None:
    code, lines, _ = check({WAITRESS: behaviour} if not behaviour.install_error else {"waitress": behaviour})
    assert code == 1
    assert lines[0].startswith("OK      uvicorn/standard")
    assert lines[1].startswith("FAILED  waitress/threads")
    assert words in lines[1]


def test_what_could_not_be_found_out_is_told(check: Check) -> None:
    code, lines, _ = check({WAITRESS: Behaviour(fingerprint={"server": None, "parser": None})})
    assert code == 0
    assert lines[1].endswith(
        ": a server that is not known, keeps connections, ready in 0.10 s, not verified: server, parser"
    )


def test_an_interrupt_closes_the_engine(check: Check) -> None:
    code, _, _ = check(kind=Interrupted)
    assert code == 130
