"""The rules that name a server, on stacks recorded under real servers (tests/cases/stacks), and the way to a stack."""

from __future__ import annotations

import functools
import sys
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "images" / "apps"))

import fingerprint  # noqa: E402
from identity import LIBRARIES, OWN_PARSERS, PARSERS, SERVERS, Clue, Identity, identify, unlisted  # noqa: E402

STACKS = sorted((ROOT / "tests" / "cases" / "stacks").glob("*.txt"))
NAMES = st.sampled_from([package for package, _ in SERVERS] + [name for _, name, _ in PARSERS]) | st.text(max_size=9)
CLUES = st.lists(st.builds(Clue, st.sampled_from(["frame", "self", "parser", "fast", "worker"]), NAMES), max_size=6)


def read(path: Path) -> tuple[list[Clue], list[str], Identity]:
    """A recorded stack: its clues, the modules that were loaded, and what must come out ("-" is None)."""
    lines = [line.split(" ") for line in path.read_text().splitlines() if not line.startswith("#")]
    expected = next(words[1:] for words in lines if words[0] == "expect")
    clues = [Clue(*words) for words in lines if words[0] not in ("expect", "loaded")]
    loaded = [name for what, name in (words for words in lines if words[0] == "loaded")]
    return clues, loaded, Identity(*(None if word == "-" else word for word in expected))


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.stem)
def test_recorded_stacks(path: Path) -> None:
    clues, loaded, expected = read(path)
    assert identify(clues, loaded) == expected


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.stem)
def test_other_servers_that_are_merely_loaded_change_nothing(path: Path) -> None:
    clues, loaded, expected = read(path)
    strangers = ["gunicorn_h1c", "h11", *(package for package, _ in SERVERS)]
    assert identify(clues, [*strangers, *loaded]) == expected


def test_what_is_loaded_speaks_where_the_stack_is_silent() -> None:
    app = [Clue("frame", "raw_wsgi")]
    assert identify(app, ["_fastwsgi"]) == Identity("fastwsgi", "llhttp", None)
    assert identify(app, ["uvicorn", "uvicorn.protocols.http.h11_impl"]) == Identity("uvicorn", "h11", None)
    assert identify(app, ["h11", "os"]) == Identity(None, None, None)


def test_a_name_that_only_begins_like_a_server_is_not_that_server() -> None:
    assert identify([Clue("frame", "uvicorn_app"), Clue("frame", "granianish.x")], []).server is None


@given(CLUES, st.lists(NAMES, max_size=6))
def test_only_known_facts_come_out(clues: list[Clue], loaded: list[str]) -> None:
    server, parser, worker = identify(clues, loaded)
    assert server in {None, *(name for _, name in SERVERS)}
    assert parser in {None, *(name for _, _, name in PARSERS), *OWN_PARSERS.values()}
    assert worker in {None, *(clue.name for clue in clues if clue.what == "worker")}


def frame_of(module: str, source: str) -> types.FrameType:
    """The innermost frame of code that ran in a module of this name and left it in `frame`."""
    space: dict[str, object] = {"__name__": module, "sys": sys, "partial": functools.partial}
    exec(source, space)
    frame = space["frame"]
    assert isinstance(frame, types.FrameType)
    return frame


def test_the_choice_of_parser_is_read_off_the_request_that_gunicorn_parsed() -> None:
    source = """
class Request: _use_fast = False
class Worker:
    def handle(self, req):
        global frame
        frame = sys._getframe()
Worker().handle(Request())
"""
    clues = list(fingerprint.clues(frame_of("gunicorn.workers.sync", source)))
    assert Clue("worker", "gunicorn.workers.sync.Worker") in clues
    assert Clue("fast", "False") in clues


@pytest.mark.parametrize("wrap", ["stream.app_send", "partial(print, stream.app_send)"])
def test_the_protocol_is_found_behind_the_send_of_hypercorn(wrap: str) -> None:
    source = f"""
class Protocol:
    def stream_send(self): pass
class Stream:
    def __init__(self): self.send = Protocol().stream_send
    def app_send(self): pass
def run(send):
    global frame
    frame = sys._getframe()
stream = Stream()
run({wrap})
"""
    found = [clue for clue in fingerprint.clues(frame_of("hypercorn.app_wrappers", source)) if clue.what == "protocol"]
    assert found == [Clue("protocol", "hypercorn.app_wrappers.Protocol")]


def test_a_way_that_breaks_off_leads_nowhere() -> None:
    assert fingerprint.follow({"send": len}, ("send", "__self__", "send")) is None
    assert fingerprint.follow({"send": functools.partial(len)}, ("send", "args", 0)) is None
    assert fingerprint.follow({}, ("environ", "wsgi.input")) is None


def test_only_what_is_installed_has_a_version() -> None:
    versions = fingerprint.installed()
    assert {"flask", "starlette", "fastapi", "pytest", "pydantic-core"} <= versions.keys()
    assert "pyvoy" not in versions


OWNERS = {"nextserver": ["next-server"], "nextworker": ["nextworker"], "uvicorn": ["uvicorn"], "click": ["click"],
          "starlette": ["starlette"], "nspace": ["nspace-a", "nspace-b"]}  # fmt: skip


@pytest.mark.parametrize(
    ("innermost_first", "server", "packages"),
    [
        (["raw_asgi", "nextserver.http", "asyncio.base_events", "nextserver.cli", "click.core"], "next-server", None),
        (["starlette_app", "starlette.routing", "nextserver"], "next-server", None),
        (["raw_wsgi", "nextworker.pool", "nextserver.main"], "next-server", ["next-server", "nextworker"]),
        (["raw_asgi", "nextworker.pool", "uvicorn.server", "click.core"], "uvicorn", ["nextworker"]),
        (["raw_wsgi", "nspace.server"], "nspace-a", ["nspace-a", "nspace-b"]),
        (["raw_wsgi", "threading"], None, []),
        (["starlette_app", "starlette.routing", "click.core"], None, []),
        ([], None, []),
    ],
)
def test_a_server_that_no_table_lists_is_known_by_the_package_of_its_frames(
    innermost_first: list[str], server: str | None, packages: list[str] | None
) -> None:
    clues = [Clue("frame", name) for name in innermost_first]
    strangers = unlisted(clues, OWNERS)
    assert strangers == (["next-server"] if packages is None else packages)
    assert identify(clues, [], strangers) == Identity(server, None, None)


def test_a_server_on_the_stack_goes_before_one_that_is_merely_loaded() -> None:
    clues = [Clue("frame", "raw_wsgi"), Clue("frame", "nextserver")]
    assert identify(clues, ["_fastwsgi", "uvicorn"], unlisted(clues, OWNERS)).server == "next-server"


def test_no_framework_is_taken_for_a_server() -> None:
    lock = (ROOT / "images" / "apps" / "requirements.txt").read_text()
    names = {line.partition("==")[0] for line in lock.splitlines() if "==" in line}
    assert {fingerprint.canonical(name.strip()) for name in names} <= LIBRARIES


def test_the_owners_of_packages_are_distributions_that_are_installed() -> None:
    owners = fingerprint.owners()
    assert owners["flask"] == ["flask"]
    assert owners["_pytest"] == ["pytest"]
    assert {name for names in owners.values() for name in names} <= fingerprint.installed().keys()


def test_python_m_is_known_by_its_package() -> None:
    frame = frame_of("__main__", "import types\n__spec__ = types.SimpleNamespace(name='nextserver.__main__')\n"
                     "frame = sys._getframe()")  # fmt: skip
    assert fingerprint.module_of(frame) == "nextserver.__main__"
    assert fingerprint.module_of(frame_of("__main__", "frame = sys._getframe()")) == "__main__"
