"""A copy of the program with a change in its source: how a test adds a row to a table, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


def copied(folder: Path, changes: Mapping[str, tuple[str, str]]) -> Path:
    """The program under `folder`; `changes`: by file a text that stands in it once, and what replaces it."""
    shutil.copytree(ROOT / "orchestrator", folder / "orchestrator", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("images", "loadgen", "requirements", "docs", "matrix.yaml", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    for file, (old, new) in changes.items():
        source = (folder / file).read_text(encoding="utf-8")
        assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {file}"
        (folder / file).write_text(source.replace(old, new), encoding="utf-8")
    return folder


def matrix(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the copy under `folder`, in it."""
    code = "import sys; from orchestrator.cli.app import main; sys.argv[0] = 'matrix'; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
