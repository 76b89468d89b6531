"""Real servers, each in a virtual environment of its own: they answer, and /fingerprint names what runs."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
APPS = ROOT / "images" / "apps"
PATIENCE = 30.0
"""Seconds that a server may take to its first answer on a busy machine."""

pytestmark = pytest.mark.servers

ASYNCIO = "asyncio.unix_events._UnixSelectorEventLoop"
UVLOOP = "uvloop.Loop"
UVICORN = ("uvicorn[standard]==0.54.0", "uvicorn-worker==0.4.0", "gunicorn==27.0.1")
# Freastal 0.0.3 resets the connection when a request is longer than 16 KiB, hence its shorter echo below.
GRANIAN = ("granian[uvloop]==2.8.9",)
HYPERCORN = ("hypercorn[uvloop]==0.18.0",)


@dataclass(frozen=True)
class Case:
    """One server: what to install, how to start it, and its server, interface, loop, parser and worker class."""

    install: tuple[str, ...]
    command: str
    facts: tuple[str, str, str | None, str, str | None]
    optional: bool = False  # it is built from source, so it may fail to install for want of a compiler or headers
    echo: int = 76_800  # bytes that it is asked to echo

    def __str__(self) -> str:
        return self.command


CASES = (
    Case(UVICORN, "uvicorn --loop asyncio --http h11 {at} raw_asgi:app", ("uvicorn", "asgi", ASYNCIO, "h11", None)),
    Case(UVICORN, "uvicorn --loop asyncio --http httptools {at} starlette_app:app",
         ("uvicorn", "asgi", ASYNCIO, "httptools", None)),
    Case(UVICORN, "uvicorn --loop uvloop --http h11 {at} fastapi_app:app", ("uvicorn", "asgi", UVLOOP, "h11", None)),
    Case(UVICORN, "uvicorn --workers 2 {at} raw_asgi:app", ("uvicorn", "asgi", UVLOOP, "httptools", None)),
    Case(("uvicorn==0.54.0",), "uvicorn {at} raw_asgi:app", ("uvicorn", "asgi", ASYNCIO, "h11", None)),
    Case(UVICORN, "gunicorn -b {bind} --no-control-socket -k sync flask_app:app",
         ("gunicorn", "wsgi", None, "gunicorn", "gunicorn.workers.sync.SyncWorker")),
    Case(UVICORN, "gunicorn -b {bind} --no-control-socket -k gthread --threads 2 raw_wsgi:app",
         ("gunicorn", "wsgi", None, "gunicorn", "gunicorn.workers.gthread.ThreadWorker")),
    Case(UVICORN, "gunicorn -b {bind} --no-control-socket -k asgi starlette_app:app",
         ("gunicorn", "asgi", UVLOOP, "gunicorn", "gunicorn.workers.gasgi.ASGIWorker")),
    Case(UVICORN, "gunicorn -b {bind} --no-control-socket -k uvicorn_worker.UvicornWorker raw_asgi:app",
         ("gunicorn", "asgi", UVLOOP, "httptools", "uvicorn_worker._workers.UvicornWorker")),
    Case(GRANIAN, "granian --interface wsgi {at} flask_app:app", ("granian", "wsgi", None, "hyper", None)),
    Case(GRANIAN, "granian --interface asgi --loop asyncio {at} fastapi_app:app",
         ("granian", "asgi", ASYNCIO, "hyper", None)),
    Case(GRANIAN, "granian --interface rsgi --loop uvloop {at} raw_rsgi:app",
         ("granian", "rsgi", UVLOOP, "hyper", None)),
    Case(HYPERCORN, "hypercorn -k asyncio -b {bind} raw_asgi:app", ("hypercorn", "asgi", ASYNCIO, "h11", None)),
    Case(HYPERCORN, "hypercorn -k uvloop -b {bind} starlette_app:app", ("hypercorn", "asgi", UVLOOP, "h11", None)),
    Case(HYPERCORN, "hypercorn -b {bind} wsgi:raw_wsgi:app", ("hypercorn", "wsgi", None, "h11", None)),
    Case(("daphne==4.2.3",), "daphne -b {host} -p {port} -v 0 raw_asgi:app",
         ("daphne", "asgi", ASYNCIO, "twisted", None)),
    Case(("waitress==3.0.2",), "waitress-serve {at} flask_app:app", ("waitress", "wsgi", None, "waitress", None)),
    Case(("cheroot==11.1.2",), "cheroot --bind {bind} raw_wsgi:app", ("cheroot", "wsgi", None, "cheroot", None)),
    Case(("pyuwsgi==2.0.30.post1",),
         "uwsgi --home {venv} --master --need-app --die-on-term --http11-socket {bind} --module flask_app:app",
         ("uwsgi", "wsgi", None, "uwsgi", None)),
    Case(("tremolo==0.5.3",), "python -m tremolo {at} raw_asgi:app", ("tremolo", "asgi", ASYNCIO, "tremolo", None)),
    Case(("freastal==0.0.3",), "python -m launch.serve_freastal {at} --workers 2 flask_app:app",
         ("freastal", "wsgi", None, "picohttpparser", None), optional=True, echo=12_800),
    Case(("freastal==0.0.3",), "python -m launch.serve_freastal {at} --interface asgi fastapi_app:app",
         ("freastal", "asgi", ASYNCIO, "picohttpparser", None), optional=True, echo=12_800),
    Case(("bjoern==3.2.2",), "python -m launch.serve_bjoern {at} raw_wsgi:app",
         ("bjoern", "wsgi", None, "http-parser", None), optional=True),
    Case(("bjoern==3.2.2",), "python -m launch.serve_bjoern {at} --workers 2 flask_app:app",
         ("bjoern", "wsgi", None, "http-parser", None), optional=True),
    Case(("fastwsgi==0.0.9", "setuptools<81"), "fastwsgi {at} flask_app:app",
         ("fastwsgi", "wsgi", None, "llhttp", None), optional=True),
    Case(("fastapi-cli==0.0.34",), "fastapi run {at} {apps}/fastapi_app.py",
         ("uvicorn", "asgi", UVLOOP, "httptools", None)),
)  # fmt: skip


@pytest.fixture(scope="module")
def venvs() -> dict[tuple[str, ...], Path]:
    """The environments made so far, by what was installed into them; `venv_for` makes them on demand."""
    return {}


def venv_for(case: Case, venvs: dict[tuple[str, ...], Path], folder: Path) -> Path:
    if case.install not in venvs:
        install(case, folder)
        venvs[case.install] = folder
    return venvs[case.install]


def install(case: Case, folder: Path) -> None:
    """Make an environment with the frameworks of the images and the server."""
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, folder], check=True)
    lock = APPS / "requirements.txt"
    done = subprocess.run(
        [*uv, "pip", "install", "-q", "--python", folder / "bin" / "python", "-r", lock, *case.install],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and case.optional:
        pytest.skip(f"{case.install[0]} does not install here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


@contextmanager
def serving(command: list[str], venv: Path) -> Iterator[psutil.Process]:
    """A server in a process group of its own, all of which is gone afterwards."""
    environment = os.environ | {
        "PATH": f"{venv / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(APPS),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    process = subprocess.Popen(command, env=environment, cwd=venv, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        yield psutil.Process(process.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ask(port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        content = response.read()
        assert response.getheader("content-length") == str(len(content))
        return response.status, content
    finally:
        connection.close()


def wait_until_it_answers(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            ask(port, "GET", "/items/42")
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_real_server(case: Case, venvs: dict[tuple[str, ...], Path], tmp_path: Path) -> None:
    venv, port = venv_for(case, venvs, tmp_path / "venv"), free_port()
    at = f"--host 127.0.0.1 --port {port}"
    command = case.command.format(at=at, bind=f"127.0.0.1:{port}", host="127.0.0.1", port=port, venv=venv, apps=APPS)
    with serving(command.split(" "), venv) as process:
        wait_until_it_answers(port)
        assert ask(port, "GET", "/items/42?q=a") == (200, b'{"item_id":42,"q":"a"}')
        assert ask(port, "GET", "/bytes/100000") == (200, bytes(i % 251 for i in range(100_000)))
        body = bytes(range(256)) * (case.echo // 256)
        assert ask(port, "POST", "/echo", body) == (200, body)
        assert ask(port, "GET", "/nowhere") == (404, b'{"detail":"Not Found"}')
        facts = json.loads(ask(port, "GET", "/fingerprint")[1])
        tree = {process.pid, *(child.pid for child in process.children(recursive=True))}
    assert tuple(facts[key] for key in ("server", "interface", "loop", "parser", "worker_class")) == case.facts
    assert facts["pid"] in tree
    pinned = case.install[-1] if case.facts[0] == "gunicorn" else case.install[0]
    if "fastapi-cli" not in pinned:
        assert facts["server_version"] == pinned.split("==")[1]


SIGNALS = {
    "bjoern": (signal.SIGTERM, signal.SIGINT, signal.SIGKILL),
    "freastal": (signal.SIGTERM, signal.SIGINT),  # its own workers outlive a parent that is killed
}
STOPS = [
    (case, signum)
    for case in CASES
    if "launch." in case.command and "--workers 2" in case.command
    for signum in SIGNALS[case.facts[0]]
]


@pytest.mark.parametrize(("case", "signum"), STOPS, ids=str)
def test_workers_do_not_outlive_their_launcher(
    case: Case, signum: signal.Signals, venvs: dict[tuple[str, ...], Path], tmp_path: Path
) -> None:
    venv, port = venv_for(case, venvs, tmp_path / "venv"), free_port()
    with serving(case.command.format(at=f"--host 127.0.0.1 --port {port}").split(" "), venv) as process:
        wait_until_it_answers(port)
        tree = [process, *process.children(recursive=True)]
        assert len(tree) == 3
        process.send_signal(signum)
        gone, alive = psutil.wait_procs(tree, timeout=PATIENCE)
    assert (len(gone), alive) == (3, [])
