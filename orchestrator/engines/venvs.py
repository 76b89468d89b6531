"""Images of the local engine: virtual environments, with the same install step and report as a container image."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.engines.protocol import Say
from orchestrator.errors import BuildFailed
from orchestrator.images.host import host_settings
from orchestrator.images.plan import ROOT, BaseFacts, BuiltImage, ImageSpec, unfinished

REPORT = "install.json"
FRAMEWORKS = ROOT / "images" / "apps" / "requirements.txt"
INSTALL = ROOT / "images" / "build" / "install.py"
BUILD_TIMEOUT_S = 900
_MARGIN_S = 60
_NEXT = "`matrix doctor` checks the package index"


def build_environment(spec: ImageSpec, folder: Path, say: Say) -> BuiltImage:
    """The environment of an image, made or found. Raises BuildFailed where the package index cannot be reached."""
    digest = _digest(spec)
    venv = folder / f"{spec.key.image}-{spec.key.mode}-py{platform.python_version()}-{digest}"
    if not (venv / REPORT).is_file() or unfinished(json.loads((venv / REPORT).read_text())):
        shutil.rmtree(venv, ignore_errors=True)
        say(f"installing {spec.key.id}")
        _frameworks(venv)
        _server(spec, venv)
    base = BaseFacts(sys.version.split()[0], "", "", "the host's own Python; the flavour does not apply")
    report = json.loads((venv / REPORT).read_text())
    return BuiltImage(spec, str(venv), digest, base, platform.machine(), report)


def _digest(spec: ImageSpec) -> str:
    files = (FRAMEWORKS, *sorted(INSTALL.parent.glob("*.py")))
    decisive = (spec.key.id, spec.packages, spec.compiled, sys.version, [file.read_text() for file in files])
    return hashlib.sha256(repr(decisive).encode()).hexdigest()[:12]


def _frameworks(venv: Path) -> None:
    """uv keeps what it downloads, so that the frameworks are fetched once for all environments."""
    program = str(Path(sys.executable).with_name("uv"))
    python = str(venv / "bin" / "python")
    commands = (
        ("venv", "--seed", "--python", sys.executable, str(venv)),
        ("pip", "install", "--python", python, "--require-hashes", "-r", str(FRAMEWORKS)),
    )
    for command in commands:
        settings = host_settings().uv_environment()
        done = _run([program, "--no-config", "--color", "never", *command], settings)
        if done.returncode:
            raise BuildFailed(f"uv: {_last_line(done.stderr)}", next_step=_NEXT)


def _server(spec: ImageSpec, venv: Path) -> None:
    """images/build/install.py leaves its report in the environment. It installs no system packages on a host.

    The install mode alone says what is built, as in a container: a `no-binary` of the host's pip.conf would mix modes.
    """
    settings = spec.build_args() | {"BUILD_SYSTEM": "", "RUN_SYSTEM": "", "BUILD_TIMEOUT": str(BUILD_TIMEOUT_S)}
    settings |= {"PIP_NO_BINARY": ":none:", "PIP_ONLY_BINARY": ":none:"}
    done = _run([str(venv / "bin" / "python"), str(INSTALL)], settings)
    if done.returncode:
        raise BuildFailed(f"{spec.key.id}: {_last_line(done.stderr)}", next_step=_NEXT)


def _run(command: Sequence[str], settings: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    try:
        return subprocess.run(
            command, env=environment | dict(settings), capture_output=True, text=True, check=False,
            timeout=BUILD_TIMEOUT_S + _MARGIN_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"stopped after {BUILD_TIMEOUT_S + _MARGIN_S} s")


def _last_line(log: str) -> str:
    lines = [line.strip(" │├╰─▶×\t") for line in log.splitlines() if line.strip()]
    return (lines or ["failed without a word"])[-1][:300]
