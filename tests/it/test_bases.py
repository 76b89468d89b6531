"""Which base a flavour gets, against a real engine and a real (small, local) registry."""

from __future__ import annotations

import dataclasses
import io
import os
import subprocess
import tarfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.docker import bases
from orchestrator.engines.docker.bases import MUSL, find_base, standin_reference
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.errors import BuildFailed, EnvironmentProblem
from orchestrator.images.context import Context
from orchestrator.images.plan import ROOT, Base, base_of
from orchestrator.matrix.loading import load_matrix
from tests.servers.registry import registry

pytestmark = pytest.mark.docker


def tiny_rootfs() -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        entry = tarfile.TarInfo("hello")
        entry.size = 5
        archive.addfile(entry, io.BytesIO(b"world"))
    return io.BytesIO(stream.getvalue())


@pytest.fixture
def engine() -> Iterator[DockerEngine]:
    made = DockerEngine(f"test-{uuid.uuid4().hex[:8]}")
    yield made
    made.close()


@pytest.fixture
def saved(client: Any, engine: DockerEngine) -> Iterator[bytes]:
    """An image of one file, as `docker save` writes it, and gone from the engine again."""
    reference = f"appserver-matrix/test-{uuid.uuid4().hex[:8]}:1"
    engine.store.import_rootfs(tiny_rootfs(), reference, {"appserver-matrix.kind": "test"})
    content = b"".join(client.images.get(reference).save())
    client.images.remove(reference)
    yield content


def test_an_official_image_is_pulled(client: Any, engine: DockerEngine, saved: bytes) -> None:
    said: list[str] = []
    with registry(saved) as host:
        base = Base("slim", "3.13", f"{host}/python:3.13-slim-trixie", "")
        try:
            facts = find_base(engine.store, base, said.append)
            again = find_base(engine.store, base, said.append)
        finally:
            client.images.remove(base.official)
    assert (facts.reference, facts.standin, facts.note) == (base.official, "", "pulled")
    assert facts.digest.startswith("sha256:")
    assert again.note == "the official image, present here"
    assert said == [f"base slim: pulling {base.official}"]


def test_a_registry_that_never_answers_is_given_up(
    engine: DockerEngine, saved: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bases, "PULL_SILENCE_S", 1.0)
    began = time.monotonic()
    with registry(saved, hangs=True) as host, pytest.raises(EnvironmentProblem, match="no answer within"):
        find_base(engine.store, Base("slim", "3.13", f"{host}/python:3.13", ""), lambda _: None)
    assert time.monotonic() - began < 20


def test_a_registry_that_is_not_there_is_said_without_its_name(engine: DockerEngine) -> None:
    base = Base("slim", "3.13", "127.0.0.1:9/python:3.13", "")
    with pytest.raises(EnvironmentProblem, match="the registry refused the connection") as caught:
        find_base(engine.store, base, lambda _: None)
    assert "--engine local" in caught.value.next_step


def test_a_python_that_no_debian_has_is_said(engine: DockerEngine) -> None:
    base = Base("slim", "3.13", "127.0.0.1:9/python:3.99", "slim")
    with pytest.raises(EnvironmentProblem, match=r"no Debian release carries Python 3\.99"):
        find_base(engine.store, dataclasses.replace(base, python="3.99"), lambda _: None)


def test_a_stand_in_that_fails_leaves_no_image(
    engine: DockerEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "rootfs.sh"
    script.write_text("echo half a root file system; echo no mirror answers >&2; exit 3\n")
    monkeypatch.setattr(bases, "SCRIPT", script)
    base = Base("slim", "3.13", "127.0.0.1:9/python:3.13", "debian")
    standin = f"{standin_reference(base)}-never"
    monkeypatch.setattr(bases, "standin_reference", lambda _: standin)
    with pytest.raises(EnvironmentProblem, match="no mirror answers"):
        find_base(engine.store, base, lambda _: None)
    assert engine.store.digest(standin) is None


def test_an_interrupted_build_leaves_no_container(client: Any, engine: DockerEngine) -> None:
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    base = find_base(engine.store, base_of(matrix, "slim", "3.13"), lambda _: None)
    recipe = f"ARG BASE\nFROM ${{BASE}}\nENV TOKEN={uuid.uuid4().hex}\nRUN sleep 60\n"
    context = Context({MUSL: (recipe.encode(), False)})
    failed: list[BuildFailed] = []

    def build() -> None:
        try:
            engine.store.build_standin(
                context, {"BASE": base.reference}, "appserver-matrix/test-interrupt:1", {}, target=""
            )
        except BuildFailed as error:
            failed.append(error)

    before = {container.id for container in client.containers.list(all=True)}
    thread = threading.Thread(target=build)
    thread.start()
    while not any("sleep 60" in str(c.attrs["Config"]["Cmd"]) for c in client.containers.list()):
        time.sleep(0.05)
    engine.close()
    thread.join(30)
    assert len(failed) == 1
    assert {container.id for container in client.containers.list(all=True)} <= before


def test_an_mmdebstrap_that_is_not_installed_is_fetched_and_works(tmp_path: Path) -> None:
    for program in [*Path("/usr/sbin").iterdir(), *Path("/usr/bin").iterdir()]:
        if not program.name.startswith("mm"):
            (tmp_path / program.name).unlink(missing_ok=True)
            (tmp_path / program.name).symlink_to(program)
    made = subprocess.run(
        ["bash", str(bases.SCRIPT), "slim"], capture_output=True, env=os.environ | {"PATH": str(tmp_path)}, check=False
    )
    if made.returncode == 3:
        pytest.skip(made.stderr.decode().splitlines()[-1])
    assert made.returncode == 0, made.stderr.decode()[-2000:]
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
        assert {"./usr/bin/python3", "./usr/bin/apt-get"} <= set(archive.getnames())
