"""Real servers with more connections than threads: one that never answers some is marked, fair ones are not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from orchestrator.engines.local import LocalEngine
from orchestrator.evidence.model import Record
from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand, one_flavour
from orchestrator.matrix.loading import load_matrix
from orchestrator.pipeline import Order, run

pytestmark = pytest.mark.servers

SERVERS = ["uwsgi/pyuwsgi", "uvicorn/standard", "gunicorn/sync", "granian/wsgi", "waitress/threads"]
SCHEDULE = {"rounds": 2, "slices": 3, "slice_s": 0.2, "warmup_s": 0.3, "first_warmup_s": 1.0}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Record]]:
    """Slices of 0.2 s at 8 and 32 connections; those servers that have threads have four."""
    folder = tmp_path_factory.mktemp("starved")
    document = yaml.safe_load((ROOT / "matrix.yaml").read_text(encoding="utf-8"))
    axes = {"server": SERVERS, "app": ["flask", "starlette"], "threads": 4, "connections": [8, 32]}
    document["suites"]["starved"] = {"baseline": SERVERS[1], "axes": axes, "schedule": SCHEDULE}
    (folder / "matrix.yaml").write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), encoding="utf-8")
    matrix = load_matrix(folder / "matrix.yaml").matrix
    engine = LocalEngine(ROOT / ".cache")
    try:
        yield run(Order(matrix, one_flavour(expand(matrix, "starved")), folder / "run", 1), engine, lambda _: None)[1]
    finally:
        engine.close()


def starved(records: list[Record], server: str) -> dict[int, list[str]]:
    """What the verdict says at each number of connections."""
    return {
        record.cell.connections: [verdict.text for verdict in record.verdicts if verdict.rule == "starved"]
        for record in records
        if record.cell.server == server and record.outcome == "measured"
    }


def test_a_server_that_leaves_connections_without_an_answer_is_out_of_the_order(records: list[Record]) -> None:
    said = starved(records, "uwsgi")
    assert said[8][0].startswith("4 of 8 connections had no answer in ")
    assert said[32][0].startswith("28 of 32 connections had no answer in ")
    assert {v.effect for record in records for v in record.verdicts if v.rule == "starved"} == {"unranked"}


@pytest.mark.parametrize("server", [name.partition("/")[0] for name in SERVERS[1:]])
def test_a_server_that_takes_turns_is_not_accused(server: str, records: list[Record]) -> None:
    assert starved(records, server) == {8: [], 32: []}
