"""images/build/install.py with a real pip, in a real virtual environment, from a folder of packages made here."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# A build back end of its own inside the sdist: it needs no index, and does what its {body} says.
BACKEND = """
import zipfile
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    {body}
    with zipfile.ZipFile(wheel_directory + "/source-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("source.py", "")
        wheel.writestr("source-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: source\\nVersion: 1.0\\n")
        head = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n"
        wheel.writestr("source-1.0.dist-info/WHEEL", head + "Tag: py3-none-any\\n")
        wheel.writestr("source-1.0.dist-info/RECORD", "")
    return "source-1.0-py3-none-any.whl"
"""


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder


def write_wheel(folder: Path) -> None:
    with zipfile.ZipFile(folder / "ready-2.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("ready.py", "answer = 42\n")
        wheel.writestr("ready-2.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: ready\nVersion: 2.0\n")
        wheel.writestr("ready-2.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("ready-2.0.dist-info/RECORD", "")


def write_sdist(folder: Path, body: str) -> None:
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "PKG-INFO": "Metadata-Version: 2.1\nName: source\nVersion: 1.0\n",
        "backend.py": BACKEND.format(body=body),
    }
    with tarfile.open(folder / "source-1.0.tar.gz", "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"source-1.0/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))


def run_install(venv: Path, **env: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, install.json ({} where there is none) and standard error."""
    (venv / "install.json").unlink(missing_ok=True)
    argv = [str(venv / "bin/python"), str(ROOT / "images/build/install.py")]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    done = subprocess.run(argv, env=clean | env, capture_output=True, text=True, check=False)
    file = venv / "install.json"
    return done.returncode, json.loads(file.read_text()) if file.exists() else {}, done.stderr


def test_a_wheel(venv: Path, tmp_path: Path) -> None:
    write_wheel(tmp_path)
    delta = tmp_path / "delta"
    code, report, _ = run_install(
        venv, PACKAGES="ready==2.0", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path), DELTA=str(delta)
    )
    assert (code, report["outcome"], report["error"], report["schema"]) == (0, "pure", None, 1)
    (package,) = report["packages"]
    assert (package["file"], package["kind"], package["tag"]) == ("ready-2.0-py3-none-any.whl", "wheel", "py3-none-any")
    assert package["bytes"] == report["bytes_downloaded"] == (tmp_path / package["file"]).stat().st_size
    copied = [path for path in (delta / venv.relative_to("/")).rglob("*") if path.is_file()]
    assert {"ready.py", "install.json"} <= {path.name for path in copied}
    assert [path for path in copied if path.name.startswith("ready.cpython")], "compiled to bytecode"
    assert report["size_added"] == sum(path.stat().st_size for path in copied if path.name != "install.json")


def test_an_sdist_is_built(venv: Path, tmp_path: Path) -> None:
    write_sdist(tmp_path, "pass")
    code, report, _ = run_install(
        venv,
        PACKAGES="source==1.0",
        COMPILED="source",
        INSTALL_MODE="sdist",
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS=str(tmp_path),
    )
    assert (code, report["outcome"], report["mode"]) == (0, "pure", "sdist")
    (package,) = report["packages"]
    assert (package["kind"], package["tag"], package["compiled"]) == ("sdist", "py3-none-any", False)
    assert report["seconds"]["build"] > 0


@pytest.mark.parametrize(
    ("body", "mode", "timeout", "error"),
    [
        (
            "raise RuntimeError('no such luck')",
            "sdist",
            "60",
            {"kind": "build_error", "line": "RuntimeError: no such luck"},
        ),
        ("import time; time.sleep(60)", "sdist", "6", {"kind": "timeout", "line": None}),
        ("pass", "wheel", "60", {"kind": "no_wheel", "line": None}),
    ],
    ids=["build-error", "timeout", "no-wheel"],
)
def test_a_failed_install_is_an_outcome(
    venv: Path, tmp_path: Path, body: str, mode: str, timeout: str, error: dict[str, str | None]
) -> None:
    write_sdist(tmp_path, body)
    subprocess.run([str(venv / "bin/python"), "-m", "pip", "-q", "uninstall", "-y", "source"], check=True)
    code, report, _ = run_install(
        venv,
        PACKAGES="source==1.0",
        COMPILED="source",
        INSTALL_MODE=mode,
        BUILD_TIMEOUT=timeout,
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS=str(tmp_path),
    )
    assert (code, report["outcome"], report["error"]["kind"]) == (0, "failed", error["kind"])
    assert error["line"] in (None, report["error"]["line"])


def test_an_index_out_of_reach_is_no_outcome(venv: Path) -> None:
    code, report, stderr = run_install(
        venv, PACKAGES="ready==9", PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="1"
    )
    assert (code, report) == (75, {})
    assert "network or index trouble" in stderr


def test_a_system_package_the_script_cannot_install_is_an_outcome(venv: Path, tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    code, report, _ = run_install(venv, PACKAGES="ready==2.0", RUN_SYSTEM="libev4", PATH=str(tmp_path))
    assert (code, report["error"]["kind"], report["system"]) == (0, "no_package_manager", ["libev4"])
