"""Images of the local engine: virtual environments made by uv, with the same report as a container image carries."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.engines.protocol import Say
from orchestrator.errors import BuildFailed
from orchestrator.images.host import host_settings
from orchestrator.images.plan import ROOT, BaseFacts, BuiltImage, ImageSpec

REPORT = "install.json"
FRAMEWORKS = ROOT / "images" / "apps" / "requirements.txt"
BUILD_TIMEOUT_S = 900
_TROUBLE = ("error sending request", "failed to fetch", "dns error", "connection refused", "invalid peer certificate")


def build_environment(spec: ImageSpec, folder: Path, say: Say) -> BuiltImage:
    """The environment of an image, made or found. Raises BuildFailed where the package index cannot be reached."""
    digest = _digest(spec)
    venv = folder / f"{spec.key.image}-{spec.key.mode}-py{platform.python_version()}-{digest}"
    if not (venv / REPORT).is_file():
        shutil.rmtree(venv, ignore_errors=True)
        say(f"installing {spec.key.id}")
        report = _install(spec, venv)
        (venv / REPORT).write_text(json.dumps(report, indent=1))
    base = BaseFacts(sys.version.split()[0], "", "", "the host's own Python; the flavour does not apply")
    report = json.loads((venv / REPORT).read_text())
    return BuiltImage(spec, str(venv), digest, base, platform.machine(), report)


def _digest(spec: ImageSpec) -> str:
    decisive = (spec.key.id, spec.packages, spec.compiled, sys.version, FRAMEWORKS.read_text())
    return hashlib.sha256(repr(decisive).encode()).hexdigest()[:12]


def _install(spec: ImageSpec, venv: Path) -> dict[str, Any]:
    """Frameworks first, then the server with the frameworks held where they are."""
    python = str(venv / "bin" / "python")
    _must(_uv("venv", "--python", sys.executable, str(venv)))
    _must(_uv("pip", "install", "--python", python, "--require-hashes", "-r", str(FRAMEWORKS)))
    frameworks = _versions(python)
    constraints = venv / "frameworks.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in frameworks.items()))
    option = "--only-binary" if spec.key.mode == "wheel" else "--no-binary"
    mode = [word for name in spec.compiled for word in (option, name)]
    started = time.monotonic()
    done = _uv("pip", "install", "--python", python, "-c", str(constraints), *mode, *spec.packages)
    seconds = round(time.monotonic() - started, 2)
    if done.returncode and any(sign in done.stderr.lower() for sign in _TROUBLE):
        raise BuildFailed(f"{spec.key.id}: the package index failed: {_reason(done.stderr)}")
    return _report(spec, seconds, "" if done.returncode == 0 else _reason(done.stderr), frameworks, python)


def _report(
    spec: ImageSpec, seconds: float, failure: str, frameworks: Mapping[str, str], python: str
) -> dict[str, Any]:
    """The fields of install.json that uv lets us know; files and bytes are the install probe's affair."""
    installed = "compiled" if spec.key.mode == "sdist" and spec.compiled else "wheel" if spec.compiled else "pure"
    new = {} if failure else {name: text for name, text in _versions(python).items() if name not in frameworks}
    return {
        "schema": 1,
        "outcome": "failed" if failure else installed,
        "mode": spec.key.mode,
        "packages": [{"name": name, "version": version} for name, version in sorted(new.items())],
        "seconds": {"install": seconds},
        "error": {"kind": "build_error", "line": failure} if failure else None,
        "python": platform.python_version(),
        "installer": "uv",
    }


def _versions(python: str) -> dict[str, str]:
    done = _must(_uv("pip", "list", "--python", python, "--format", "json"))
    return {item["name"]: item["version"] for item in json.loads(done.stdout)}


def _uv(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("uv")
    environment = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= host_settings().uv_environment()
    command: Sequence[str] = [str(program), "--no-config", "--color", "never", *arguments]
    try:
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=BUILD_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"error: stopped after {BUILD_TIMEOUT_S} s")


def _must(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    if done.returncode:
        raise BuildFailed(f"uv: {_reason(done.stderr)}", next_step="`matrix doctor` checks the package index")
    return done


def _reason(log: str) -> str:
    """The line that says most: a compiler's error before uv's own summary."""
    lines = [line.strip(" │├╰─▶×\t") for line in log.splitlines() if line.strip()]
    telling = [line for line in lines if "error:" in line.lower() or "Error" in line or "No such file" in line]
    return (telling or lines or ["failed without a word"])[0][:300]
