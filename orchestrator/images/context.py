"""The files of an image as one tar archive in memory, the same bytes for the same content, and their digest."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.images.plan import ROOT

_LEFT_OUT = {"__pycache__", ".mypy_cache", ".ruff_cache"}


@dataclass(frozen=True)
class Context:
    """A build context: file name in the archive -> (content, executable)."""

    files: Mapping[str, tuple[bytes, bool]]

    def tar(self, extra: Mapping[str, bytes] | None = None) -> bytes:
        """The archive; `extra` adds files that do not count for the digest (the host's CA bundle)."""
        added = {name: (content, False) for name, content in (extra or {}).items()}
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for name, (content, executable) in sorted({**self.files, **added}.items()):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), 0o755 if executable else 0o644
                archive.addfile(entry, io.BytesIO(content))
        return stream.getvalue()

    def digest(self, *decisive: object) -> str:
        """Twelve hexadecimal digits over the files and whatever else decides the image's content."""
        told = hashlib.sha256(json.dumps(decisive, sort_keys=True, default=str).encode())
        for name, (content, executable) in sorted(self.files.items()):
            told.update(f"{name}\0{executable}\0{len(content)}\0".encode() + content)
        return told.hexdigest()[:12]


def server_context(dockerfile: str) -> Context:
    """images/ as a server's image needs it: its Dockerfile, the shared scripts and the apps."""
    return read_context(ROOT / "images", [dockerfile, "build", "apps", "host/README.md"])


def loadgen_context() -> Context:
    """The load generator's image: its package, its lock, its Dockerfile."""
    return read_context(ROOT, ["loadgen", "requirements/loadgen.txt", "images/loadgen", "images/host/README.md"])


def read_context(folder: Path, names: Iterable[str]) -> Context:
    """The named files and folders below `folder`. Raises FileNotFoundError where one is missing."""
    files: dict[str, tuple[bytes, bool]] = {}
    for name in names:
        path = folder / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if not file.is_dir() and not _LEFT_OUT & set(file.parts):
                executable = bool(file.stat().st_mode & 0o100)
                files[file.relative_to(folder).as_posix()] = (file.read_bytes(), executable)
    return Context(files)
