"""images/build: what the in-image install step reads, decides and reports, without pip."""

from __future__ import annotations

import io
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "images/build"))

import classify  # noqa: E402
import install  # noqa: E402

CASES = sorted((ROOT / "tests/cases/install-errors").glob("*.txt"))
KINDS = {kind for kind, _ in classify.RULES}


def read_case(path: Path) -> tuple[str, str, str]:
    """Kind, line and log of a case: two header lines, `---`, and the output of a real failed install."""
    head, log = path.read_text().split("---\n", 1)
    kind, line = head.splitlines()
    return kind.removeprefix("kind: "), line.removeprefix("line: "), log


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_real_logs(path: Path) -> None:
    kind, line, log = read_case(path)
    assert classify.classify(log) == classify.Failure(kind, line)


def test_every_kind_has_a_real_log() -> None:
    assert {read_case(path)[0] for path in CASES} == KINDS


@given(st.text())
def test_any_log_has_a_kind_and_a_line_fit_for_a_record(log: str) -> None:
    failure = classify.classify(log)
    assert failure.kind in KINDS
    assert classify.URL.search(failure.line) is None
    assert len(failure.line) <= 300


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  ERROR: 404 for https://u:p@index.example/simple/x/ (x)", "ERROR: 404 for <url> (x)"),
        ("no 'http://index.example:8080/a'", "no '<url>'"),
        ("x" * 400, "x" * 300),
    ],
)
def test_a_line_is_kept_without_urls(line: str, expected: str) -> None:
    assert classify.tidy(line) == expected


def test_order_reads_the_build_arguments() -> None:
    env = {
        "PACKAGES": "uvicorn[standard]==0.54.0  x",
        "COMPILED": "uvloop httptools",
        "INSTALL_MODE": "sdist",
        "BUILD_SYSTEM": "libev-dev",
        "RUN_SYSTEM": "libev4t64",
        "BUILD_TIMEOUT": "60",
    }
    order = install.Order.from_environment(env)
    assert order == install.Order(
        ("uvicorn[standard]==0.54.0", "x"), ("uvloop", "httptools"), "sdist", ("libev-dev", "libev4t64"), 60.0
    )
    assert order.format_control == ["--no-binary=uvloop,httptools"]


def test_order_defaults_to_wheels_and_no_format_control_for_pure_servers() -> None:
    order = install.Order.from_environment({"PACKAGES": "gunicorn", "INSTALL_MODE": "", "BUILD_TIMEOUT": ""})
    assert order == install.Order(("gunicorn",), (), "wheel", (), 900.0)
    assert order.format_control == []
    compiled = install.Order.from_environment({"PACKAGES": "granian", "COMPILED": "granian"})
    assert compiled.format_control == ["--only-binary=granian"]


@pytest.mark.parametrize(
    ("env", "message"),
    [({"PACKAGES": " "}, "PACKAGES is empty"), ({"PACKAGES": "x", "INSTALL_MODE": "egg"}, "it is wheel or sdist")],
)
def test_order_refuses(env: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        install.Order.from_environment(env)


@pytest.mark.parametrize(
    ("file", "name", "version", "tag", "kind"),
    [
        (
            "granian-2.8.9-cp313-cp313-musllinux_1_1_x86_64.whl",
            "granian",
            "2.8.9",
            "cp313-cp313-musllinux_1_1_x86_64",
            "wheel",
        ),
        ("a_b-1.0-1-py3-none-any.whl", "a_b", "1.0", "py3-none-any", "wheel"),
        ("uwsgi-2.0.31.tar.gz", "uwsgi", "2.0.31", "", "sdist"),
        ("mod-wsgi-standalone-6.1.1.tar.gz", "mod-wsgi-standalone", "6.1.1", "", "sdist"),
        ("old-1.0.zip", "old", "1.0", "", "sdist"),
    ],
)
def test_file_names(tmp_path: Path, file: str, name: str, version: str, tag: str, kind: str) -> None:
    path = tmp_path / file
    path.write_bytes(b"12345")
    assert install.describe(path) == install.Package(name, version, file, tag, kind, False, 5)


def package(tag: str, compiled: bool = False) -> install.Package:
    return install.Package("x", "1", "x", tag, "wheel", compiled, 1)


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        ([package("py3-none-any")], "pure"),
        ([], "pure"),
        ([package("py3-none-any"), package("cp310-abi3-manylinux_2_17_x86_64")], "wheel"),
        ([package("cp313-cp313-linux_x86_64", compiled=True), package("cp313-cp313-musllinux_1_2_x86_64")], "compiled"),
    ],
)
def test_outcomes(packages: list[install.Package], expected: str) -> None:
    assert install.outcome(packages) == expected


def archives(folder: Path, in_sdist: Iterable[str], in_wheel: Iterable[str]) -> tuple[Path, Path]:
    sdist, wheel = folder / "x-1.tar.gz", folder / "x-1-cp313-cp313-linux_x86_64.whl"
    with tarfile.open(sdist, "w:gz") as tar:
        for name in in_sdist:
            entry = tarfile.TarInfo(f"x-1/{name}")
            entry.size = len(content(name))
            tar.addfile(entry, io.BytesIO(content(name)))
    with zipfile.ZipFile(wheel, "w") as whl:
        for name in in_wheel:
            whl.writestr(name, content(name))
    return sdist, wheel


def content(name: str) -> bytes:
    return b"text" if name.endswith(".py") else b"\x7fELF\x02\x01"


@pytest.mark.parametrize(
    ("in_sdist", "in_wheel", "made_here"),
    [
        (["x/lib.so", "setup.py"], ["x/lib.so"], set()),
        (["x/lib.so.1.2"], ["x/lib.so.1.2", "x/_made.cpython-313.so"], {"_made.cpython-313.so"}),
        (["setup.py"], ["x-1.data/scripts/uwsgi", "x.py"], {"uwsgi"}),
        (["setup.py"], ["x.py"], set()),  # its extension is optional, and there was no compiler
    ],
)
def test_what_was_compiled_here(tmp_path: Path, in_sdist: list[str], in_wheel: list[str], made_here: set[str]) -> None:
    sdist, wheel = archives(tmp_path, in_sdist, in_wheel)
    assert install.binaries(wheel) - install.binaries(sdist) == made_here


def test_the_delta_is_what_was_added_or_changed(tmp_path: Path) -> None:
    venv, delta = tmp_path / "venv", tmp_path / "delta"
    (venv / "lib").mkdir(parents=True)
    (venv / "lib/old.py").write_text("old")
    (venv / "lib/changed.py").write_text("before")
    before = install.snapshot(venv)
    (venv / "lib/changed.py").write_text("after!!")
    (venv / "bin").mkdir()
    (venv / "bin/server").symlink_to("../lib/changed.py")
    after = install.snapshot(venv)
    added = [path for path in after if after[path] != before.get(path)]
    install.copy_delta(added, delta)
    copied = {str(path.relative_to(delta)) for path in delta.rglob("*") if not path.is_dir() or path.is_symlink()}
    assert copied == {str(venv.relative_to("/") / name) for name in ("lib/changed.py", "bin/server")}
    assert (delta / venv.relative_to("/") / "bin/server").readlink() == Path("../lib/changed.py")


def test_a_step_past_its_deadline_is_killed_with_its_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code, log = install.run_logged(["sh", "-c", f"echo begun; sleep 60 & echo $! > {pid_file}; wait"], 0.3)
    assert (code, log) == (None, "begun\n")
    child = int(pid_file.read_text())
    for _ in range(200):  # the kernel needs a moment on a busy machine
        if not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.05)
    pytest.fail("the child lives on")


def test_a_failed_step_keeps_its_seconds_and_raises_its_kind() -> None:
    progress = install.Progress(deadline=time.monotonic() + 30)
    with pytest.raises(install.InstallFailed, match=r"no_compiler: error: command 'gcc' failed: No such file"):
        progress.run("build", ["sh", "-c", "echo \"  error: command 'gcc' failed: No such file or directory\"; exit 1"])
    assert progress.seconds["build"] > 0
