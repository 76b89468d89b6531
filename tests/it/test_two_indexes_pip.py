"""A pip.conf with lists of several lines: pip and uv find what only the second of two further indexes has."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from orchestrator.engines import venvs
from orchestrator.images.host import host_settings
from orchestrator.images.plan import Base, ImageSpec
from orchestrator.matrix.cell import ImageKey
from orchestrator.matrix.models import SystemPackages
from tests.it.test_install_step import write_wheel

NAME = "ready-2.0-py3-none-any.whl"
SPEC = ImageSpec(
    ImageKey("ready", "slim", "wheel", "3.13"), Base("slim", "3.13", "none", ""), "", ("ready==2.0",), ("ready",),
    SystemPackages(),
)  # fmt: skip


class Index(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing to tell."""


@pytest.fixture
def indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty default index, an empty further one, and one with the wheel; pip.conf names them one a line."""
    with ExitStack() as stack:
        urls = []
        for at in range(3):
            (tmp_path / f"index-{at}" / "ready").mkdir(parents=True)
            handler = partial(Index, directory=str(tmp_path / f"index-{at}"))
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            urls.append(f"http://127.0.0.1:{server.server_port}")
        write_wheel(tmp_path / "index-2" / "ready")
        for at, page in enumerate(("", "", f'<a href="{NAME}">{NAME}</a>')):
            (tmp_path / f"index-{at}" / "ready" / "index.html").write_text(
                f"<!DOCTYPE html><html><body>{page}</body></html>"
            )
        conf = f"[global]\nindex-url = {urls[0]}\nno-binary = :all:\nextra-index-url =\n    {urls[1]}\n    {urls[2]}\n"
        (tmp_path / "pip.conf").write_text(conf)
        monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
        for name in ("INDEX_URL", "EXTRA_INDEX_URL", "FIND_LINKS", "NO_INDEX", "TRUSTED_HOST"):
            monkeypatch.delenv(f"PIP_{name}", raising=False)
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
        host_settings.cache_clear()
        yield
    host_settings.cache_clear()


@pytest.mark.usefixtures("indexes")
def test_server_comes_from_the_second_index(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    venvs._server(SPEC, venv)
    report = (venv / venvs.REPORT).read_text()
    assert '"outcome": "pure"' in report, report
    assert '"kind": "wheel"' in report


@pytest.mark.usefixtures("indexes")
def test_frameworks_come_from_the_second_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256((tmp_path / "index-2" / "ready" / NAME).read_bytes()).hexdigest()
    wanted, to = tmp_path / "requirements.txt", tmp_path / "to"
    wanted.write_text(f"ready==2.0 --hash=sha256:{digest}\n")
    monkeypatch.setenv("PIP_FIND_LINKS", "/no/folder")
    settings = host_settings().uv_environment() | {"UV_CACHE_DIR": str(tmp_path / "cache")}
    uv = str(Path(sys.executable).with_name("uv"))
    command = [uv, "--no-config", "pip", "install", "--target", str(to), "--require-hashes", "-r", str(wanted)]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (to / "ready.py").is_file()
