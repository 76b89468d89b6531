"""The ceiling, against a real null responder in a process of its own."""

from __future__ import annotations

import json
import shutil

import jsonschema
import pytest

from loadgen.ceiling import Shape, main, measure
from loadgen.contract import schemas

SCHEMA = schemas()["ceiling"]


def test_every_shape_has_its_ceiling() -> None:
    shapes = [Shape(connections, body, tls=False) for connections in (1, 4) for body in (0, 12_000)]
    found = measure(shapes, duration_s=0.1, rounds=2)
    assert [(s.connections, s.body_bytes) for s in found.shapes] == [(1, 0), (1, 12_000), (4, 0), (4, 12_000)]
    assert all(shape.rps > 0 for shape in found.shapes)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the openssl command makes the certificate")
def test_the_command_with_tls(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "2", "-b", "23", "-d", "0.1", "-n", "1", "--tls", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    assert [shape["tls"] for shape in found["shapes"]] == [False, True]
