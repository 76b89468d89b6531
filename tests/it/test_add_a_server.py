"""README's "Add a server in three steps", with a server from PyPI that no table of this repository lists."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from orchestrator.engines.docker.client import connect
from orchestrator.engines.docker.options import LABEL_OWNER, LABEL_RUN
from orchestrator.evidence.store import latest_run, read_run
from orchestrator.images.plan import ROOT

MATRIX = str(Path(sys.executable).with_name("matrix"))
ENTRY = """servers:
  nextserver:
    protocol: asgi
    install: [fastpysgi==0.6]
    run: fastpysgi --host {host} --port {port} {options} {app}
    variants:
      plain: {declares: {loop: asyncio.unix_events._UnixSelectorEventLoop}}
      threads: {protocol: wsgi}
      guess: {declares: {parser: llhttp}}
      wrong: {declares: {loop: uvloop.Loop}}
      flag: {options: --no-such-flag}
"""
OF_THE_MACHINE = {"host_saturated", "throttled", "client_late", "client_bound"}
ENGINES = [pytest.param("docker", marks=pytest.mark.docker), pytest.param("local", marks=pytest.mark.servers)]


def matrix(*words: str, file: Path) -> subprocess.CompletedProcess[str]:
    command = [MATRIX, *words, "--file", str(file)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Step 1: the entry. Nobody knows the server: its name is nowhere else."""
    text = (ROOT / "matrix.yaml").read_text()
    tables = (ROOT / "images" / "apps" / "identity.py").read_text()
    assert "fastpysgi" not in text + tables
    path = tmp_path / "matrix.yaml"
    path.write_text(text.replace("servers:\n", ENTRY, 1))
    return path


@pytest.mark.parametrize("engine", ENGINES)
def test_a_server_that_nobody_knows_is_ranked(engine: str, file: Path, tmp_path: Path) -> None:
    only = [word for name in ("plain", "threads", "guess") for word in ("--only", f"nextserver/{name}*c8")]
    checked = matrix("list", "throughput", "--check", "--engine", engine, *only, file=file)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert re.search(r"^OK +nextserver/plain·\S+: fastpysgi 0\.6, loop asyncio\.\S+, keeps conn", checked.stdout, re.M)
    assert re.search(r"^OK +nextserver/guess·.* not verified: parser$", checked.stdout, re.M)

    done = matrix("run", "throughput", "--engine", engine, "--results", str(tmp_path), *only, file=file)
    assert done.returncode == 0, done.stderr
    _, records = read_run(latest_run(tmp_path))
    own = {record.cell.variant: record for record in records if record.cell.server == "nextserver"}
    assert own.keys() == {"plain", "threads", "guess"}
    for record in own.values():
        assert record.outcome == "measured"
        gravest = {verdict.rule for verdict in record.verdicts if verdict.effect != "mark"}
        if "host_saturated" in gravest:  # a machine as busy as that may leave a slice of 0.2 s without any answer
            gravest -= {verdict.rule for verdict in record.verdicts if verdict.text == "no answer at all"}
        assert gravest <= OF_THE_MACHINE
        assert (record.rounds[0].fingerprint or {})["server_version"] == "0.6"
    assert [verdict.text for verdict in own["guess"].verdicts if verdict.rule == "unverified"] == [
        "declared, and not to be found out: parser"
    ]
    assert "unverified" not in {verdict.rule for verdict in own["plain"].verdicts}


@pytest.mark.servers
def test_what_does_not_work_is_said_by_the_second_step(file: Path) -> None:
    only = [word for name in ("wrong", "flag") for word in ("--only", f"nextserver/{name}*c8")]
    checked = matrix("list", "throughput", "--check", "--engine", "local", *only, file=file)
    assert checked.returncode == 1
    assert "FAILED  nextserver/wrong" in checked.stdout
    assert "loop is asyncio.unix_events._UnixSelectorEventLoop, declared uvloop.Loop" in checked.stdout
    assert "ended with exit code 2: fastpysgi: error: unrecognized arguments: --no-such-flag" in checked.stdout
    assert "2 of 3 servers would not be measured" in checked.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupt_of_the_second_step_leaves_nothing(engine: str, file: Path) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # inherited by the background jobs of a script
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [MATRIX, "list", "quick", "--check", "--engine", engine, "--only", "waitress*", "--file", str(file)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("image 2/2"):  # from here on servers are started
            break
    os.killpg(process.pid, signal.SIGINT)
    left = {child.pid for child in psutil.Process(process.pid).children(recursive=True)}
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in words
    assert not [pid for pid in left if psutil.pid_exists(pid)]
    if engine == "docker":
        ours = connect().containers.list(all=True, filters={"label": LABEL_RUN})
        assert not [container for container in ours if container.labels[LABEL_OWNER].endswith(f":{process.pid}")]


def test_the_readme_says_so() -> None:
    steps = (ROOT / "README.md").read_text().partition("## Add a server in three steps")[2].partition("\n## ")[0]
    assert "make list SUITE=throughput ARGS=\"--check --only 'nextserver*'\"" in steps
    assert "make matrix SUITE=throughput ARGS=\"--only 'nextserver*'\"" in steps
