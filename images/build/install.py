"""Installs one server over the frameworks of this virtual environment, and leaves install.json in it.

Run by the environment's own interpreter; standard library only, Python 3.11+. The environment variables are the build
arguments of the Dockerfiles: PACKAGES, COMPILED, INSTALL_MODE, BUILD_SYSTEM, RUN_SYSTEM, BUILD_TIMEOUT, and DELTA, the
folder that gets a copy of what the server added (unset: none). Exit code 0: install.json tells the outcome, a failed
install included; 75: the network or the index failed, which says nothing about the server.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path

from classify import TROUBLE, Failure, classify

SCHEMA = 1
EX_TEMPFAIL = 75
NATIVE = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""How executables and shared objects begin: ELF, Mach-O of one architecture, and of several."""
# -B: pip must not write bytecode of its own among what the server adds.
PIP = [sys.executable, "-B", "-m", "pip", "--disable-pip-version-check", "--no-input"]


class InstallFailed(Exception):
    """A step failed for a reason that `classify` found in its log."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.kind}: {failure.line}")
        self.failure = failure


@dataclass(frozen=True)
class Order:
    """What to install. `compiled` names the distributions on which the install mode acts; `timeout` is in seconds."""

    packages: tuple[str, ...]
    compiled: tuple[str, ...]
    mode: str
    system: tuple[str, ...]
    timeout: float

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> Order:
        """Raises ValueError when there is nothing to install, or the install mode is unknown."""
        mode = env.get("INSTALL_MODE") or "wheel"
        packages = tuple(env.get("PACKAGES", "").split())
        if mode not in ("wheel", "sdist"):
            raise ValueError(f"INSTALL_MODE is {mode!r}; it is wheel or sdist")
        if not packages:
            raise ValueError("PACKAGES is empty; it names the requirements of the server, e.g. uvicorn==0.54.0")
        system = f"{env.get('BUILD_SYSTEM', '')} {env.get('RUN_SYSTEM', '')}".split()
        timeout = float(env.get("BUILD_TIMEOUT") or 900)
        return cls(packages, tuple(env.get("COMPILED", "").split()), mode, tuple(system), timeout)

    @property
    def format_control(self) -> list[str]:
        """pip's option for the install mode; it acts on the compiled distributions alone."""
        option = "--only-binary" if self.mode == "wheel" else "--no-binary"
        return [f"{option}={','.join(self.compiled)}"] if self.compiled else []


@dataclass(frozen=True)
class Package:
    """One distribution that the server brought: the file pip chose, and what was made of it.

    `tag` is that of the wheel, downloaded or built here ("" where the build failed); `compiled` says that its binaries
    were made here; `bytes` is the size of the downloaded file.
    """

    name: str
    version: str
    file: str
    tag: str
    kind: str
    compiled: bool
    bytes: int


@dataclass
class Progress:
    """What has been done so far; a failure keeps it. Seconds per step, wall clock."""

    deadline: float
    packages: list[Package] = field(default_factory=list)
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("system", "download", "build", "install"), 0.0)
    )

    def run(self, step: str, argv: list[str]) -> None:
        """Runs a command, its output echoed when it ends. Raises InstallFailed, of kind `timeout` past the deadline."""
        start = time.monotonic()
        code, log = run_logged(argv, self.deadline - start)
        self.seconds[step] = round(self.seconds[step] + time.monotonic() - start, 3)
        sys.stdout.write(log)
        if code is None:
            raise InstallFailed(Failure("timeout", f"{step}: stopped at the build's time limit"))
        if code != 0:
            raise InstallFailed(classify(log))


def run_logged(argv: list[str], timeout: float) -> tuple[int | None, str]:
    """Exit code and output (both streams, in order) of a command; None when it and its children had to be killed."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code: int | None = process.wait(max(timeout, 0))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
        out.seek(0)
        return code, out.read().decode(errors="replace")


def install(order: Order, work: Path, progress: Progress) -> None:
    """System packages, download, build, install. What pip would take from the frameworks stays as it is."""
    if order.system:
        progress.run("system", ["sh", str(Path(__file__).with_name("system.sh")), *order.system])
    present = {canonical(d.name): d.version for d in metadata.distributions()}
    constraints = work / "constraints.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in present.items() if name != "pip"))
    files, wheels, cache = work / "files", work / "wheels", [f"--cache-dir={work / 'cache'}"]
    wheels.mkdir()
    # pip prepares the metadata of an sdist while it resolves, so that this part of a build counts as download.
    download = ["download", f"--dest={files}", f"--constraint={constraints}"]
    progress.run("download", [*PIP, *download, *cache, *order.format_control, *order.packages])
    for file in sorted(files.iterdir()):
        package = describe(file)
        if canonical(package.name) not in present:
            progress.packages.append(package)
    for index, package in enumerate(progress.packages):
        progress.packages[index] = make_wheel(package, files / package.file, wheels, cache, progress)
    names = [str(path) for path in sorted(wheels.iterdir())]
    if names:
        progress.run("install", [*PIP, "install", "--no-index", "--no-deps", *names])


def make_wheel(package: Package, file: Path, wheels: Path, cache: list[str], progress: Progress) -> Package:
    """Puts the wheel of a downloaded file into `wheels`, and builds it first where the file is an sdist."""
    if package.kind == "wheel":
        shutil.copy(file, wheels)
        return package
    before = set(wheels.iterdir())
    progress.run("build", [*PIP, "wheel", "--no-deps", f"--wheel-dir={wheels}", *cache, str(file)])
    (wheel,) = set(wheels.iterdir()) - before
    built = describe(wheel)
    # Neither a library that came along with the sdist (socketify) nor an extension that was left out for lack of a
    # compiler (zope.interface) makes it compiled.
    compiled = bool(binaries(wheel) - binaries(file))
    return Package(built.name, built.version, package.file, built.tag, "sdist", compiled, package.bytes)


def describe(file: Path) -> Package:
    """What the name of a wheel or an sdist says (the binary distribution format's and PEP 625's naming rules)."""
    size = file.stat().st_size
    if file.suffix == ".whl":
        parts = file.stem.split("-")
        return Package(parts[0], parts[1], file.name, "-".join(parts[-3:]), "wheel", False, size)
    name, version = re.sub(r"\.(tar\.\w+|tgz|zip)$", "", file.name).rsplit("-", 1)
    return Package(name, version, file.name, "", "sdist", False, size)


def binaries(archive: Path) -> set[str]:
    """Base names of the executables and shared objects in a wheel or an sdist, by their first bytes."""
    found = {}
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as files:
            found = {name: files.open(name).read(4) for name in files.namelist()}
    else:
        with tarfile.open(archive) as tar:
            found = {file.name: first_bytes(tar, file) for file in tar if file.isfile()}
    return {Path(name).name for name, first in found.items() if first in NATIVE}


def first_bytes(tar: tarfile.TarFile, file: tarfile.TarInfo) -> bytes:
    content = tar.extractfile(file)
    return content.read(4) if content else b""


def canonical(name: str) -> str:
    """A distribution's name as the index normalises it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def outcome(packages: list[Package]) -> str:
    """`compiled` where anything was compiled here, else `wheel` where a platform's wheel came, else `pure`."""
    if any(package.compiled for package in packages):
        return "compiled"
    return "wheel" if any(not package.tag.endswith("-any") for package in packages) else "pure"


def snapshot(root: Path) -> dict[Path, tuple[int, int]]:
    """Size and time of change (ns) of every file and link under a folder."""
    paths = (Path(top, name) for top, dirs, files in os.walk(root) for name in [*dirs, *files])
    stats = {path: path.lstat() for path in paths if path.is_symlink() or path.is_file()}
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


def copy_delta(paths: list[Path], delta: Path) -> None:
    """Copies files and links to the same absolute places under `delta`."""
    for path in paths:
        target = delta / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)


def libc() -> str:
    """E.g. "glibc 2.41" or "musl": platform.libc_ver() knows glibc only, so musl is read off the ABI's name."""
    if "musl" in (sysconfig.get_config_var("SOABI") or ""):
        return "musl"
    return " ".join(platform.libc_ver())


def report(order: Order, progress: Progress, failure: Failure | None, size_added: int) -> dict[str, object]:
    """The content of install.json: docs/images.md describes its fields."""
    return {
        "schema": SCHEMA,
        "outcome": "failed" if failure else outcome(progress.packages),
        "mode": order.mode,
        "packages": [asdict(package) for package in progress.packages],
        "system": list(order.system),
        "seconds": progress.seconds,
        "bytes_downloaded": sum(package.bytes for package in progress.packages),
        "size_added": size_added,
        "error": asdict(failure) if failure else None,
        "python": platform.python_version(),
        "libc": libc(),
        "arch": platform.machine(),
        "pip": metadata.version("pip"),
    }


def main() -> int:
    order, venv, failure = Order.from_environment(os.environ), Path(sys.prefix), None
    before, progress = snapshot(venv), Progress(time.monotonic() + order.timeout)
    with tempfile.TemporaryDirectory(prefix="install-") as work:
        try:
            install(order, Path(work), progress)
        except InstallFailed as error:
            failure = error.failure
    if failure and failure.kind == TROUBLE:
        print(f"install: network or index trouble, no outcome: {failure.line}", file=sys.stderr)
        return EX_TEMPFAIL
    after = snapshot(venv)
    added = [path for path in after if after[path] != before.get(path)]
    target = venv / "install.json"
    content = report(order, progress, failure, sum(after[path][0] for path in added))
    target.write_text(json.dumps(content, indent=1) + "\n")
    print(target.read_text())
    if os.environ.get("DELTA"):
        copy_delta([*added, target], Path(os.environ["DELTA"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
