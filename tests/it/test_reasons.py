"""Why a server is not measured, by real ones that misbehave: on record is the reason itself, not its echo."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from orchestrator.engines.docker import options
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.local import LocalEngine
from orchestrator.engines.protocol import Engine, Limits
from orchestrator.evidence.model import Record
from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.pipeline import Order, run
from orchestrator.probes import checks
from orchestrator.probes.startup import measure as startup

SCRIPT = base64.b64encode((ROOT / "tests" / "servers" / "odd.py").read_bytes()).decode()
START = f"""python -c "import base64; exec(base64.b64decode('{SCRIPT}'))" {{host}} {{port}} {{options}} {{app}}"""
SMALL = 96 << 20
"""Bytes of memory: more than the server needs."""
ROUNDS = 2
SCHEDULE = {"rounds": ROUNDS, "slices": 1, "slice_s": 0.5, "warmup_s": 0.1, "first_warmup_s": 0.1}

REFUSED = {  # outcome, and what the reason says
    "500": ("check_failed", "/items/42: status 500 Internal Server Error, body b'Oops: no database'; its log: "),
    "gzip": ("check_failed", "/items/42: status 200, Content-Encoding: gzip, body b'\\x1f\\x8b"),
    "304": ("check_failed", "/items/42: status 304 Not Modified, body b''"),
    "moved": ("check_failed", "/items/42: status 302 Found, Location: https://127.0.0.1/items/42, body b''"),
    "wrong": (
        "check_failed",
        """/items/42: status 200, body b'{"item_id": 42, "q": null}', not b'{"item_id":42,"q":null}'""",
    ),
    "routeless": ("check_failed", "body b'Not Found'; docs/apps.md lists what an app answers"),
    "bare": ("check_failed", "/fingerprint: status 404 Not Found, body b'Not Found'; docs/apps.md lists"),
    "list": ("check_failed", "/fingerprint: Input should be an object in body b'[]'; docs/apps.md says"),
    "null": ("check_failed", "/fingerprint: Input should be an object in body b'null'; docs/apps.md says"),
    "exits": ("not_started", "ended with exit code 1: ValueError: no such worker: 'nope'"),
}
DYING = {
    "dies": "the server ended with exit code 3: RuntimeError: the pool is empty",
    "segfault": "the server ended with exit code 139 (signal SIGSEGV)",
}


def measured(engine: Engine, folder: Path, modes: list[str], probe: str = "load") -> dict[str, Record]:
    """By mode: the record of a server in it, in a run beside one that works."""
    entry = {
        "protocol": "wsgi",
        "install": ["waitress==3.0.2"],
        "run": START,
        "variants": {f"m{mode}": {"options": mode, "declares": {"server": "odd"}} for mode in ["works", *modes]},
    }
    suite = {"axes": {"server": "all"}, **({"baseline": "odd/mworks", "schedule": SCHEDULE} if probe == "load" else
                                           {"probe": probe, "schedule": {"rounds": 1}})}  # fmt: skip
    document = {
        "version": 1,
        "flavours": {"slim": {"base": "python:{python}-slim-trixie", "libc": "glibc", "standin": "slim"}},
        "apps": {"raw-wsgi": {"protocol": "wsgi", "module": "raw_wsgi"}},
        "workloads": {"item": {"path": "/items/42", "expect_body": '{"item_id":42,"q":null}'}},
        "servers": {"odd": entry},
        "suites": {"odd": suite},
    }
    (folder / "matrix.yaml").write_text(yaml.safe_dump(document))
    matrix = load_matrix(folder / "matrix.yaml").matrix
    try:
        _, records = run(Order(matrix, expand(matrix, "odd"), folder / "run", 1), engine, lambda _: None)
    finally:
        engine.close()
    return {record.cell.variant.removeprefix("m"): record for record in records}


def failures(record: Record) -> list[str]:
    return [round_.failure.line for round_ in record.rounds if round_.failure]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Record]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "WRONG_FOR_S", 1.0)
        folder = tmp_path_factory.mktemp("local")
        yield measured(LocalEngine(ROOT / ".cache"), folder, [*REFUSED, *DYING])


@pytest.mark.servers
@pytest.mark.parametrize("mode", REFUSED)
def test_what_does_not_answer_rightly_says_what_it_answers(mode: str, local: dict[str, Record]) -> None:
    record = local[mode]
    assert record.reason
    assert (record.outcome, len(record.rounds)) == (REFUSED[mode][0], 1)
    assert REFUSED[mode][1] in record.reason.line
    assert local["works"].outcome == "measured"


@pytest.mark.servers
@pytest.mark.parametrize("mode", DYING)
def test_a_server_that_dies_under_load_is_told_by_its_own_end(mode: str, local: dict[str, Record]) -> None:
    found = failures(local[mode])
    assert len(found) == ROUNDS
    assert all(line.startswith(DYING[mode]) for line in found)


@pytest.mark.servers
def test_the_startup_probe_says_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "READY_WITHIN_S", 3.0)
    records = measured(LocalEngine(ROOT / ".cache"), tmp_path, ["500", "exits"], probe="startup")
    lines = {mode: record.reason.line for mode, record in records.items() if record.reason}
    assert lines.keys() == {"500", "exits"}
    assert lines["exits"] == "ended with exit code 1: ValueError: no such worker: 'nope'"
    assert lines["500"].startswith("no right answer within 3 s: ")
    assert records["works"].startup


@pytest.mark.docker
def test_in_a_container_it_is_the_same_and_the_kernels_kill_for_memory_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "LIMITS", {**options.LIMITS, "server": Limits(SMALL, 0, 100)})
    monkeypatch.setattr(checks, "WRONG_FOR_S", 1.0)
    records = measured(DockerEngine("reasons"), tmp_path, ["500", "exits", *DYING, "hoard"])
    wanted = {mode: words for mode, (_, words) in REFUSED.items() if mode in ("500", "exits")} | DYING
    for mode, words in wanted.items():
        assert words in failures(records[mode])[0]
    assert failures(records["hoard"])[-1].startswith("the server ended with exit code 137 (killed: out of memory)")
    assert records["works"].outcome == "measured"
