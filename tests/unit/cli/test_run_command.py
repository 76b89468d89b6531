"""`matrix run` and `matrix list` from the command line to what they print, on the memory engine."""

from __future__ import annotations

import io
import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
from rich.console import Console

from orchestrator.cli import app as cli
from orchestrator.cli.progress import shown
from orchestrator.cli.stopping import share
from orchestrator.engines.local import own_cpus
from orchestrator.images.plan import ROOT
from orchestrator.measure.events import ServersUp, SliceDone
from orchestrator.measure.placement import place
from orchestrator.records.model import RunFile
from orchestrator.records.store import latest_run, read_run
from orchestrator.spec.models import Cpus
from orchestrator.verdicts import stats
from tests.servers.engine_api import engine_api

Cli = Callable[..., tuple[int, str, str]]
SUITES = """
suites:
  one:
    baseline: threaded/plain
    axes: {server: [threaded, single], app: flask, connections: 32}
    schedule: {rounds: 3, slices: 2, slice_s: 0.5}
  pairs:
    against: {twin: false}
    apart: [flavour]
    axes: {server: single, app: flask, twin: [false, true], flavour: [slim, alpine]}
  per-cpu:
    baseline: whole/plain
    axes: {server: whole/plain, app: raw-asgi, workers: cpus}
    schedule: {rounds: 1, slices: 1, slice_s: 0.5}
  starts:
    probe: startup
    axes: {server: single, app: flask}
"""


@pytest.fixture
def matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cli:  # fmt: skip
    """Runs the program as a shell does: exit code, standard output, standard error."""
    file = tmp_path / "m.yaml"
    file.write_text(
        (ROOT / "tests/cases/four-servers.matrix.yaml").read_text(encoding="utf-8") + SUITES, encoding="utf-8"
    )
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(stats, "RESAMPLES", 200)

    def go(verb: str, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["matrix", verb, *arguments, "--file", str(file)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return go


@pytest.fixture
def dry(matrix: Cli, tmp_path: Path) -> Callable[..., tuple[int, RunFile, str]]:
    """A dry run of suite `one`: exit code, its run.json, standard error."""

    def go(*arguments: str, resume: bool = False) -> tuple[int, RunFile, str]:
        results = tmp_path / "results"
        where = ["--resume", str(next(results.iterdir()))] if resume else ["--results", str(results)]
        code, _, told = matrix("run", "one", "--dry-run", *arguments, *where)
        return code, RunFile.model_validate_json(next(results.glob("*/run.json")).read_text(encoding="utf-8")), told

    return go


def test_a_run_measures_the_rounds_of_its_suite(dry: Callable[..., tuple[int, RunFile, str]]) -> None:
    code, run_file, told = dry()
    assert (code, run_file.complete, run_file.stopped) == (0, True, "")
    assert "round 3 of 3: 2 servers up" in told
    assert "slice 12/12" in told


def test_a_run_goes_on_to_the_precision_asked_for(dry: Callable[..., tuple[int, RunFile, str]]) -> None:
    code, run_file, told = dry("--precision", "0.1%", "--max-rounds", "5")
    assert (code, run_file.schedule["precision"], run_file.schedule["max_rounds"]) == (0, 0.001, 5)
    assert run_file.stopped.startswith("5 rounds, the most asked for; not within 0.1 %: single/plain·")
    assert "round 5 of 5 at most: 2 servers up" in told
    assert "after round 5 1 ratio is not yet known to 0.1 %" in told


def test_a_resumed_run_has_the_precision_that_it_had_until_another_is_given(
    dry: Callable[..., tuple[int, RunFile, str]],
) -> None:
    dry("--precision", "0.1%", "--max-rounds", "4")
    _, again, _ = dry(resume=True)
    assert (again.schedule["precision"], again.schedule["max_rounds"]) == (0.001, 4)
    assert again.stopped.startswith("4 rounds")
    _, further, told = dry("--max-rounds", "5", resume=True)
    assert further.stopped.startswith("5 rounds")
    assert "round 5 of 5 at most" in told
    assert "round 4" not in told
    _, coarse, _ = dry("--precision", "50%", resume=True)
    assert coarse.stopped == "every ratio is known to 50 %: after 5 rounds"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("one", "--max-rounds", "5"),
            2,
            "--max-rounds is for runs that go on to a precision\n  -> add --precision 3%",
        ),
        (
            ("one", "--precision", "3%", "--max-rounds", "2"),
            2,
            "--max-rounds 2 is less than the 3 rounds of suite 'one'",
        ),
        (("starts", "--precision", "3%"), 2, "suite 'starts' gives no ratios: its probe is startup"),
        (("one", "--precision", "3"), 2, "is not a share from 0 to under 1"),
        (("one", "--max-rounds", "0"), 2, "--max-rounds"),
        (("ones",), 2, "there is no suite 'ones'; did you mean 'one'?"),
    ],
)
def test_bad_usage_is_told(arguments: tuple[str, ...], code: int, message: str, matrix: Cli, tmp_path: Path) -> None:
    ended, _, told = matrix("run", *arguments, "--dry-run", "--results", str(tmp_path / "results"))
    assert (ended, message in told) == (code, True), told
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("text", "value"), [("3%", 0.03), ("3 %", 0.03), ("0.03", 0.03), ("0.5%", 0.005), ("0", 0.0)])
def test_shares(text: str, value: float) -> None:
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["3", "100%", "-1%", "three", "", "%", "nan", "inf"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        share(text)


def test_a_list_says_what_is_compared_with_what(matrix: Cli) -> None:
    _, told, _ = matrix("list", "pairs")
    assert "Each cell is compared with the one that has twin false and agrees in all else: (reference)." in told
    assert "Cells that differ in flavour are not compared with each other." in told
    assert "single/plain·slim·wheel·py3.13·flask·w1·c32  (reference)" in told
    assert "single/plain·slim·wheel·py3.13·flask·w1·twin·c32\n" in told
    _, told, _ = matrix("list", "one")
    assert "Each cell is compared with threaded/plain under the same load: (reference)." in told
    _, told, _ = matrix("list", "starts")
    assert "compared" not in told
    assert "reference" not in told


def test_a_list_for_programs_names_references(matrix: Cli) -> None:
    _, told, _ = matrix("list", "pairs", "--json")
    document = json.loads(told)
    assert (document["baseline"], document["against"], document["apart"]) == ("", {"twin": False}, ["flavour"])
    assert {cell["id"].replace("·twin", "") for cell in document["cells"]} == {
        cell["reference"] for cell in document["cells"]
    }


ELSEWHERE = {"NCPU": 8, "ServerVersion": "28.0.1"}
"""An engine whose machine has more CPUs than this one, as DOCKER_HOST can name."""


@pytest.fixture(params=["own", "elsewhere", "elsewhere and failing"])
def engine_cpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, ...]]:
    """DOCKER_HOST where no engine answers, where one answers, or breaks; the CPUs that `auto` has then."""
    if request.param == "own":
        monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
        yield own_cpus()
        return
    answers = ELSEWHERE if request.param == "elsewhere" else {}
    with engine_api(answers) as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        yield tuple(range(8)) if answers else own_cpus()


def test_workers_per_cpu_are_those_of_the_engine(engine_cpus: tuple[int, ...], matrix: Cli, tmp_path: Path) -> None:
    workers = len(place(Cpus(), engine_cpus).server)
    code, listed, _ = matrix("list", "per-cpu")
    assert (code, f"·w{workers}·" in listed) == (0, True), listed
    code, _, _ = matrix("run", "per-cpu", "--dry-run", "--results", str(tmp_path / "results"))
    (record,) = read_run(latest_run(tmp_path / "results"))[1]
    assert (code, record.cell.workers) == (0, workers)


def test_compose_pins_to_cpus_of_the_engine(matrix: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_api(ELSEWHERE) as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        _, composed, _ = matrix("compose", "one", "-O", "-")
    assert "cpuset: '7'" in composed
    assert "cpuset: 1,2,3,4,5,6" in composed


def test_cpus_of_the_matrix_are_looked_for_on_the_engine(
    engine_cpus: tuple[int, ...], matrix: Cli, tmp_path: Path
) -> None:
    last = max(own_cpus()[-1], 7)
    file = tmp_path / "m.yaml"
    file.write_text(f"cpus: {{client: '{last}'}}\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    code, _, told = matrix("list", "one")
    expected = (0, "") if last in engine_cpus else (2, f"there is no CPU {last}")
    assert (code, expected[1] in told) == (expected[0], True), told


def test_progress_on_a_terminal_takes_an_unknown_number_of_slices() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    with shown(console) as emit:
        emit(ServersUp(4, 2, 2, "30 at most"))
        for done in range(1, 4):
            emit(SliceDone("a cell", 1234.0, 0.5, done, None))
    assert "3/?" in console.file.getvalue()  # type: ignore[attr-defined]


def test_progress_in_a_log_takes_an_unknown_number_of_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.cli.progress.PLAIN_EVERY_S", -1.0)
    console = Console(file=io.StringIO(), force_terminal=False, width=200)
    with shown(console) as emit:
        emit(SliceDone("a cell", 1234.0, 0.5, 7, None))
        emit(SliceDone("a cell", None, 0.5, 8, 8))
    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "slice 7: a cell 1,234 rps", "slice 8/8, 0 s left: a cell no figure"
    ]  # fmt: skip
