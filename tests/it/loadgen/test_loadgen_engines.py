"""The second opinions, where they are installed, against the null responder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

import loadgen
from loadgen.ceiling import responder
from loadgen.errors import EngineError
from loadgen.run import load
from loadgen.spec import LoadSpec

SCHEMA = json.loads((Path(loadgen.__file__).parent / "schema" / "result.json").read_text(encoding="utf-8"))
ENGINES = ("wrk", "h2load")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_gives_a_result_of_the_same_schema(engine: str) -> None:
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not installed")
    with responder(23, None, None) as port:
        result = load(LoadSpec(f"http://127.0.0.1:{port}/", engine=engine, connections=2, headers=(("x-y", "z"),)))
    jsonschema.validate(result, SCHEMA)
    assert result["requests"] > 0
    assert not any(result["errors"].values())
    assert result["latency"]["count"] >= result["requests"]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_that_is_not_there_says_so(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EngineError, match="SECOND_OPINION=1"):
        load(LoadSpec("http://127.0.0.1:1/", engine=engine))
