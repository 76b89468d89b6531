"""Whatever the settings of Docker's client hold, a build goes on or ends in one line that says why."""

from __future__ import annotations

import json
import subprocess
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engines.docker.client import connect
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.errors import BuildFailed, EnvironmentProblem
from orchestrator.images.context import Context

pytestmark = pytest.mark.docker

SCRATCH = Context({"Dockerfile": (b"FROM scratch\nCOPY Dockerfile /\n", False)})
REGISTRY = "registry.example.org"
NONE = "nonesuch"
MISSING = [
    {"credsStore": NONE},
    {"credHelpers": {REGISTRY: NONE}},
    {"credHelpers": {REGISTRY: NONE, "other.example.org": "nothing-either"}, "auths": {"third.example.org": {}}},
    {"credsStore": NONE, "credHelpers": {REGISTRY: NONE}},
    {"credsStore": "../bin/sh"},
    {"credHelpers": {REGISTRY: ""}},
]
WRONG = [
    "[]", '"text"', '{"auths": []}', '{"auths": {"a": 1}}', '{"auths": {"a": {"auth": "Zm9v"}}}', '{"proxies": 1}',
    '{"auths": {"a": {"auth": 1}}}', '{"credHelpers": ["a"]}', '{"credHelpers": {"a": 1}}', '{"credsStore": {"a": 1}}',
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the client's settings, with whatever helpers stand in its `bin`."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return tmp_path


@pytest.fixture
def reference() -> Iterator[str]:
    connect().close()
    name = f"appserver-matrix/test-settings:{uuid.uuid4().hex[:8]}"
    yield name
    subprocess.run(["docker", "image", "rm", "--force", name], check=False, capture_output=True)


def _build(reference: str) -> DockerEngine:
    engine = DockerEngine("test-settings", "asked for")
    engine.builder.build(SCRATCH, "Dockerfile", reference, {})
    assert engine.store.digest(reference)
    return engine


@pytest.mark.parametrize("settings", MISSING, ids=json.dumps)
def test_build_and_pull_go_on_without_a_helper_that_is_not_installed(
    settings: dict[str, object], folder: Path, reference: str
) -> None:
    (folder / "config.json").write_text(json.dumps(settings))
    with warnings.catch_warnings(action="error"):
        engine = _build(reference)
        assert "Credentials store" not in engine.store.pull("127.0.0.1:9/nothing:1", 20)
    assert engine.facts.why.startswith("asked for; without the credentials of docker-credential-")


@pytest.mark.parametrize("script", ["exit 1", "echo no JSON", "echo '{}'", "echo broken >&2; exit 3"])
@pytest.mark.parametrize("settings", [{"credsStore": "here"}, {"credHelpers": {REGISTRY: "here"}}], ids=json.dumps)
def test_helper_that_fails_is_told_in_one_line(
    settings: dict[str, object], script: str, folder: Path, reference: str
) -> None:
    helper = folder / "bin" / "docker-credential-here"
    helper.write_text(f"#!/bin/sh\n{script}\n")
    helper.chmod(0o755)
    (folder / "config.json").write_text(json.dumps(settings))
    try:
        _build(reference)
    except BuildFailed as error:
        assert len(error.what.splitlines()) == 1
        assert error.what.startswith(f"{reference}: ")


@pytest.mark.parametrize("text", WRONG)
def test_settings_of_another_form_are_ignored_or_told(text: str, folder: Path, reference: str) -> None:
    (folder / "config.json").write_text(text)
    try:
        _build(reference)
    except EnvironmentProblem as error:
        assert error.what.startswith("the settings of Docker's client cannot be used: ")
        assert "DOCKER_CONFIG" in error.next_step


@pytest.mark.parametrize("text", ["", "{", "\0\xff", "not JSON"])
def test_settings_that_are_no_json_are_ignored_as_by_docker(text: str, folder: Path, reference: str) -> None:
    (folder / "config.json").write_text(text, encoding="latin-1")
    _build(reference)


def test_settings_that_cannot_be_opened_are_ignored_as_by_docker(folder: Path, reference: str) -> None:
    (folder / "config.json").mkdir()
    _build(reference)
