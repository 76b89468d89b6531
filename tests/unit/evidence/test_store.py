"""A run's folder belongs to one process at a time, and gives back what is whole in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.engines.memory import MemoryEngine
from orchestrator.errors import EnvironmentProblem, SpecError
from orchestrator.evidence.store import Found, find_run, held, read_run, write_records, write_run
from orchestrator.images.plan import ROOT
from orchestrator.matrix.cell import file_name
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.pipeline import Order, run

MATRIX = load_matrix(ROOT / "matrix.yaml").matrix
HOLDS = """
import sys, pathlib
from orchestrator.evidence.store import held
with held(pathlib.Path(sys.argv[1]), new=False):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two cells."""
    folder = tmp_path_factory.mktemp("runs") / "one"
    run(Order(MATRIX, expand(MATRIX, "smoke"), folder), MemoryEngine(), lambda _: None)
    return folder


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(measured, tmp_path / "one"))


def records(folder: Path) -> list[Path]:
    return sorted((folder / "cells").iterdir())


def test_a_new_folder_is_made_by_one_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with held(folder, new=True), pytest.raises(EnvironmentProblem, match="File exists"), held(folder, new=True):
        raise AssertionError
    assert not (tmp_path / "a" / "b").exists()


def test_a_folder_that_another_process_measures_in_is_refused(folder: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    said = f"is being measured right now by process {other.pid}"
    with pytest.raises(SpecError, match=said), held(folder, new=False):
        raise AssertionError
    other.kill()
    other.communicate()
    with held(folder, new=False):
        assert read_run(folder)[0].complete


def test_what_holds_no_run_is_neither_held_nor_touched(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="holds no run"), held(tmp_path, new=False):
        raise AssertionError
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_said_first(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for results in (tmp_path / "file", tmp_path / "file" / "deeper", Path("/proc/1/results"), Path("/dev/null")):
        said = r"cannot be written: .+\n  -> .*--results"
        with pytest.raises(EnvironmentProblem, match=said), held(results / "run", new=True):
            raise AssertionError


def found_after(folder: Path, change: Callable[[Path, Path], object]) -> Found:
    first, second = records(folder)
    change(first, second)
    return find_run(folder)


CHANGES: dict[str, tuple[Callable[[Path, Path], object], str, int]] = {
    "missing": (lambda one, _: one.unlink(), "is missing, though the run is complete", 1),
    "empty": (lambda one, _: one.write_text(""), "Invalid JSON", 1),
    "half": (lambda one, _: one.write_text(one.read_text()[:500]), "Invalid JSON", 1),
    "binary": (lambda one, _: one.write_bytes(b"\xff\xfe\x00"), "Invalid JSON", 1),
    "another schema": (lambda one, _: one.write_text('{"schema": "x"}'), "schema", 1),
    "of another cell": (lambda one, two: shutil.copy(two, one), "the record is of the cell", 1),
    "of another run": (
        lambda one, _: one.write_text(one.read_text().replace('"run":"one"', '"run":"two"')),
        "the record is of another run, two", 1,
    ),
    "a stranger": (lambda one, _: shutil.copy(one, one.with_name("x.json")), "x.json is of no cell of this run", 2),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_a_record_that_is_missing_damaged_or_not_of_this_run_is_named_and_the_rest_is_there(
    case: str, folder: Path
) -> None:
    change, told, kept = CHANGES[case]
    found = found_after(folder, change)
    assert len(found.records) == kept
    (trouble,) = found.troubles
    assert trouble.startswith("left out: ")
    assert told in trouble


def test_a_whole_run_has_no_troubles(folder: Path) -> None:
    found = find_run(folder)
    assert (found.run, found.records, found.troubles) == (*read_run(folder), ())


def test_an_unfinished_run_misses_nothing(folder: Path) -> None:
    run_file, _ = read_run(folder)
    write_run(folder, run_file.model_copy(update={"complete": False}))
    records(folder)[0].unlink()
    assert find_run(folder).troubles == ()


def test_many_files_are_one_sentence(folder: Path) -> None:
    for at in range(9):
        shutil.copy(records(folder)[0], folder / "cells" / f"a{at}.json")
    (trouble,) = find_run(folder).troubles
    assert trouble.endswith("a0.json, a1.json, a2.json and 6 more are of no cell of this run")


def test_records_of_another_run_are_not_gone_on_with(folder: Path) -> None:
    run_file, _ = read_run(folder)
    write_run(folder, run_file.model_copy(update={"id": "two"}))
    with pytest.raises(SpecError, match="of another run, one"):
        read_run(folder)


def test_records_of_before_they_named_their_run_are_its_own() -> None:
    found = find_run(ROOT / "results" / "reference" / "aa")
    assert {record.run for record in found.records} == {""}
    assert found.troubles == ()


def test_a_disk_that_fills_up_leaves_what_was_whole(folder: Path) -> None:
    """A folder in the place of the file that is to be replaced stands for it: the kernel refuses likewise."""
    run_file, kept = read_run(folder)
    (path := folder / "cells" / file_name(kept[0].id)).unlink()
    (path / "in the way").mkdir(parents=True)
    with pytest.raises(EnvironmentProblem, match="go on with --resume"):
        write_records(folder, kept)
    assert read_run(folder)[0] == run_file
    assert not list(folder.rglob("*.tmp"))
