"""The second opinions, where they are installed, against the null responder."""

from __future__ import annotations

import shutil
import socket
from typing import Literal

import jsonschema
import pytest
from documents import load_document, loaded
from scripted import answer, request_of, served

from loadgen.ceiling import responder
from loadgen.contract import LoadSpec, schemas
from loadgen.errors import EngineError, SpecError

SCHEMA = schemas()["load-result"]
Engine = Literal["wrk", "h2load"]
ENGINES: tuple[Engine, ...] = ("wrk", "h2load")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_gives_a_result_of_the_same_schema(engine: Engine) -> None:
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not installed")
    with responder(23, None, None) as port:
        url = f"http://127.0.0.1:{port}/"
        result = loaded(LoadSpec(url=url, engine=engine, connections=2, headers=(("x-y", "z"),)))
    jsonschema.validate(result, SCHEMA)
    assert result["requests"] > 0
    assert not any(result["errors"].values())
    assert result["latency"]["count"] >= result["requests"]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_sends_what_the_built_in_generator_sends(engine: Engine) -> None:
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not installed")
    seen: set[tuple[bytes, bool]] = set()

    def noted(conn: socket.socket) -> None:
        while request := request_of(conn):
            seen.add((request.split(b"\r\n")[0], "x: é\xa0\r\n".encode("latin-1") in request.replace(b"X: ", b"x: ")))
            conn.sendall(answer())

    with served(noted) as url:
        for name in ("builtin", engine):
            doc = {"url": f"{url}日本/a b?q=%41", "engine": name, "headers": [["X", "é\xa0"]]}
            assert load_document(doc)["requests"] > 0
    assert seen == {(b"GET /%E6%97%A5%E6%9C%AC/a%20b?q=%41 HTTP/1.1", True)}


def test_wrk_sends_a_field_once_so_two_of_a_name_are_refused() -> None:
    with pytest.raises(SpecError, match=r"spec\.headers"):
        loaded(LoadSpec(url="http://127.0.0.1:1/", engine="wrk", headers=(("X", "1"), ("x", "2"))))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_that_is_not_there_says_so(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EngineError, match="SECOND_OPINION=1"):
        loaded(LoadSpec(url="http://127.0.0.1:1/", engine=engine))
