"""`matrix run` and `matrix list` from the command line to what they print, on the memory engine."""

from __future__ import annotations

import io
import json
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from rich.console import Console

from loadgen.contract import LoadResult
from orchestrator.cli import app as cli
from orchestrator.cli.closing import run_name
from orchestrator.cli.progress import shown
from orchestrator.cli.showing import FORMS
from orchestrator.cli.stopping import share
from orchestrator.engines.local import own_cpus
from orchestrator.engines.memory import Behaviour, MemoryEngine
from orchestrator.evidence.model import RunFile
from orchestrator.evidence.store import find_run, latest_run, read_run
from orchestrator.images.plan import ROOT
from orchestrator.judge import stats
from orchestrator.matrix.models import Cpus
from orchestrator.probes.events import ServersUp, SliceDone
from orchestrator.probes.placement import place
from orchestrator.tools.machine import read_machine
from tests.servers.engine_api import engine_api
from tests.unit.loads import changed

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
  installed:
    probe: install
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
        of_file = [] if verb in ("report", "judge", "schema") else ["--file", str(file)]
        monkeypatch.setattr(sys, "argv", ["matrix", verb, *arguments, *of_file])
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


def test_what_compose_and_schema_cannot_write_is_told_in_a_sentence(matrix: Cli, tmp_path: Path) -> None:
    for arguments in (("compose", "one", "-O", str(tmp_path)), ("schema", "--write", str(tmp_path / "missing"))):
        code, _, told = matrix(*arguments)
        assert (code, "cannot be written: " in told) == (3, True), told


def test_a_report_names_records_that_are_left_out_and_ends_with_1(matrix: Cli, tmp_path: Path) -> None:
    matrix("run", "one", "--dry-run", "--results", str(tmp_path / "results"))
    folder = suite_of(tmp_path / "results")
    assert matrix("report", str(folder))[0] == 0
    next((folder / "cells").glob("single*")).write_text("{")
    for form in ("terminal", "markdown", "csv", "json", "svg"):
        code, shown_tables, told = matrix("report", str(folder), "--format", form)
        assert (code, told.startswith("left out: ")) == (1, True)
        assert "threaded/plain" in shown_tables


def test_a_report_that_cannot_be_shown_is_a_sentence(
    matrix: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise KeyError("a column")

    matrix("run", "one", "--dry-run", "--results", str(tmp_path))
    monkeypatch.setitem(FORMS, "csv", broken)
    code, _, told = matrix("report", str(suite_of(tmp_path)), "--format", "csv")
    assert (code, told.startswith("the report could not be shown, for a fault of this program: KeyError: ")) == (
        1,
        True,
    )


def test_a_report_on_the_terminal_goes_to_a_file_as_it_is(matrix: Cli, tmp_path: Path) -> None:
    matrix("run", "one", "--dry-run", "--results", str(tmp_path / "results"))
    _, shown_tables, _ = matrix("report", str(suite_of(tmp_path / "results")))
    matrix("report", str(suite_of(tmp_path / "results")), "-O", str(tmp_path / "report.txt"))
    assert (tmp_path / "report.txt").read_text(encoding="utf-8") == shown_tables


def test_a_run_is_judged_again_and_shown(matrix: Cli, tmp_path: Path) -> None:
    matrix("run", "one", "--dry-run", "--results", str(tmp_path))
    _, before, _ = matrix("report", str(suite_of(tmp_path)))
    assert matrix("judge", str(suite_of(tmp_path))) == (0, before, "")
    assert matrix("judge", str(tmp_path))[0] == 2


def test_machine_trouble_is_said_before_anything_is_built(
    matrix: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = replace(read_machine(tmp_path), on_battery=True)
    monkeypatch.setattr(cli, "choose_engine", lambda *_: MemoryEngine())
    monkeypatch.setattr("orchestrator.tools.environment.read_machine", lambda _: machine)
    code, _, told = matrix("run", "one", "--results", str(tmp_path / "results"))
    lines = told.splitlines()
    said = lines.index("bad: power: on battery: the machine saves power -> plug it in")
    assert code == 0
    assert 0 < said < next(at for at, line in enumerate(lines) if "round 1" in line)
    _, _, of_a_dry_run = matrix("run", "one", "--dry-run", "--results", str(tmp_path / "results"))
    assert "power" not in of_a_dry_run


def suite_of(results: Path) -> Path:
    """The one run under a folder."""
    (folder,) = (path.parent for path in results.glob("*/run.json"))
    return folder


def test_two_runs_that_start_in_the_same_second_share_nothing(matrix: Cli, tmp_path: Path) -> None:
    names = {run_name("one") for _ in range(200)}
    assert len(names) == 200
    for _ in range(2):
        matrix("run", "one", "--dry-run", "--results", str(tmp_path))
    runs = [find_run(path.parent) for path in tmp_path.glob("*/run.json")]
    assert len({found.run.id for found in runs}) == 2
    assert [{record.run for record in found.records} for found in runs] == [{found.run.id} for found in runs]


FAILED: dict[str, tuple[str, dict[str, Behaviour], str]] = {
    "not built": ("one", {"threaded": Behaviour(build_error="no index"), "single": Behaviour(build_error="no index")},
                  "2 not built (threaded/plain·"),
    "not started": ("one", {name: Behaviour(start_error="no module x") for name in ("threaded/plain", "single/plain")},
                    "2 not started (threaded/plain·"),
    "void": ("one", {name: Behaviour(errors={"reset": 900}) for name in ("threaded/plain", "single/plain")},
             "2 void (threaded/plain·"),
    "startup": ("starts", {"single/plain": Behaviour(start_error="no module x")}, "1 not started (single/plain·"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILED)
def test_a_run_without_anything_usable_ends_with_1_and_its_last_line_says_why(
    case: str, matrix: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, behaviours, why = FAILED[case]
    monkeypatch.setattr(cli, "choose_engine", lambda *_: MemoryEngine(behaviours))
    code, _, told = matrix("run", suite, "--dry-run", "--results", str(tmp_path))
    assert code == 1
    assert told.splitlines()[-1].startswith(f"nothing usable was measured: {why}")


def test_one_usable_cell_is_enough_and_a_cell_that_cannot_be_judged_is_a_finding(
    matrix: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def garbled(load: LoadResult) -> LoadResult:
        return changed(load, latency={"histogram": "none"})

    for behaviour, ends in ((Behaviour(start_error="no module x"), 0), (Behaviour(load=garbled), 1)):
        engine = MemoryEngine({"single/plain": behaviour})
        monkeypatch.setattr(cli, "choose_engine", lambda *_, engine=engine: engine)
        code, shown_tables, told = matrix("run", "one", "--dry-run", "--results", str(tmp_path))
        assert code == ends
        assert "threaded/plain" in shown_tables
        assert ("some cells could not be judged" in told) == bool(ends)


def test_a_failed_install_is_a_result_and_no_image_at_all_is_none(
    matrix: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for behaviour, ends in ((Behaviour(install_error="no compiler"), 0), (Behaviour(build_error="no index"), 1)):
        engine = MemoryEngine({"single": behaviour})
        monkeypatch.setattr(cli, "choose_engine", lambda *_, engine=engine: engine)
        assert matrix("run", "installed", "--dry-run", "--results", str(tmp_path))[0] == ends


@pytest.mark.parametrize("suite", ["starts", "installed"])
def test_the_last_lines_print_only_what_is_known(suite: str, matrix: Cli, tmp_path: Path) -> None:
    _, _, told = matrix("run", suite, "--dry-run", "--results", str(tmp_path))
    assert "measuring" in told
    assert "overhead" not in told
    assert "own CPU" not in told


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_built(matrix: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, told = matrix("run", "one", "--dry-run", "--results", str(tmp_path / "file"))
    assert code == 3
    assert "cannot be written: " in told
    assert "image" not in told


@pytest.mark.parametrize("where", ["/dev/full", "folder", "folder/missing/file", "/proc/x"])
@pytest.mark.parametrize("form", ["terminal", "markdown", "csv", "json", "svg"])
def test_a_file_that_cannot_be_written_is_told_in_a_sentence(
    where: str, form: str, matrix: Cli, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    matrix("run", "one", "--dry-run", "--results", str(tmp_path / "results"))
    folder = suite_of(tmp_path / "results")
    code, _, told = matrix("report", str(folder), "--format", form, "-O", str(tmp_path / where))
    assert (code, "cannot be written: " in told, "-> name another file: -O FILE" in told) == (3, True, True)
