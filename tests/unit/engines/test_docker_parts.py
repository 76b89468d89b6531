"""The parts of the Docker engine, each against an engine by script: what they ask, and what they make of answers."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import docker
import pytest

from orchestrator.engines.docker.builder import Builder
from orchestrator.engines.docker.housekeeping import RunContainers, remove_images
from orchestrator.engines.docker.images import Images
from orchestrator.engines.docker.inventory import Held
from orchestrator.engines.docker.servers import Servers
from orchestrator.engines.docker.store import Store
from orchestrator.engines.protocol import Launch, Placement
from orchestrator.errors import BuildFailed, ServerFailed
from orchestrator.images.context import Context
from orchestrator.images.plan import ROOT, BaseFacts, BuiltImage, ImageSpec, image_of
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from tests.servers.engine_api import Answer, Stream, engine_api

MATRIX = load_matrix(ROOT / "matrix.yaml").matrix
CELL: Cell = expand(MATRIX, "quick", only=("waitress",)).cells[0]
SPEC: ImageSpec = image_of(MATRIX, CELL)
CONTEXT = Context({"Dockerfile": (b"FROM scratch\n", False)})
IMAGE: Answer = (200, {"Id": "sha256:1", "Architecture": "amd64"})
NO_IMAGE: Answer = (404, {"message": "No such image"})
CREATED: dict[str, Answer] = {
    "POST /containers/create": (201, {"Id": "c1"}),
    "GET /containers/c1/json": (200, {"Id": "c1", "State": {"Running": False, "Status": "created"}}),
    "DELETE /containers/c1": (204, b""),
}
Connect = Callable[[dict[str, Answer]], tuple[docker.DockerClient, list[str]]]


@pytest.fixture
def by_script() -> Iterator[Connect]:
    """A client of an engine with this script, and the list of what it is asked."""
    with ExitStack() as stack:

        def start(script: dict[str, Answer]) -> tuple[docker.DockerClient, list[str]]:
            asked: list[str] = []
            address = stack.enter_context(engine_api({"NCPU": 2}, script, asked))
            client = docker.DockerClient(address, version="1.41", timeout=10)
            stack.callback(client.close)
            return client, asked

        yield start


def built(*texts: str, error: str = "") -> Stream:
    return Stream([*({"stream": text} for text in texts), *([{"error": error}] if error else [])])


def test_a_build_asks_for_its_stage_and_passes_arguments(by_script: Connect) -> None:
    client, asked = by_script({"POST /build": (200, built("Step 1/1 : FROM scratch"))})
    Builder(client, threading.Event()).build(CONTEXT, "D", "name:1", {"PACKAGES": "granian"}, target="server")
    (request,) = asked
    assert "target=server" in request and "t=name%3A1" in request and "granian" in request


def test_a_build_that_fails_is_told_with_its_last_lines(by_script: Connect) -> None:
    client, _ = by_script({"POST /build": (200, built("first", "no such file", error="exit code 1"))})
    with pytest.raises(BuildFailed, match=r"name:1: exit code 1\n    first\n    no such file"):
        Builder(client, threading.Event()).build(CONTEXT, "D", "name:1", {})


def test_after_an_interrupt_every_step_is_ended_as_it_begins(by_script: Connect) -> None:
    steps = built(" ---> Running in abc123\n", " ---> Running in def456\n", error="killed")
    client, asked = by_script({"POST /build": (200, steps), "DELETE /containers/.*": (204, b"")})
    builder = Builder(client, threading.Event())
    builder.close()
    with pytest.raises(BuildFailed, match="killed"):
        builder.build(CONTEXT, "D", "name:1", {})
    ended = [request.partition("?")[0] for request in asked if request.startswith("DELETE")]
    assert ended == ["DELETE /containers/abc123", "DELETE /containers/def456"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((200, Stream([{"status": "Pulling"}, {"status": "Done"}])), ""),
        ((200, Stream([{"status": "Pulling"}, {"error": "manifest unknown: not found"}])), "not found"),
        ((500, {"message": "no such host\nsecond line"}), "no such host"),
        ((200, b"{half an answ"), "Expecting"),
    ],
)
def test_why_a_pull_failed_is_one_line(answer: Answer, reason: str, by_script: Connect) -> None:
    client, _ = by_script({"POST /images/create": answer})
    told = Store(client, Builder(client, threading.Event())).pull("python:3.13", 5)
    assert (reason in told) and "\n" not in told and bool(told) == bool(reason)


def report(**fields: Any) -> Answer:
    """An archive with install.json, as the engine gives it out of a container."""
    content = json.dumps({"outcome": "pure", "packages": [], "seconds": {}, "error": None, **fields}).encode()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        entry = tarfile.TarInfo("install.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return 200, stream.getvalue()


def images(client: docker.DockerClient) -> Images:
    containers = RunContainers(client, "run")
    builder = Builder(client, containers.closing)
    return Images(client, Store(client, builder), builder, containers)


def test_an_image_that_is_here_is_not_built(by_script: Connect) -> None:
    client, asked = by_script({"GET /images/.*": IMAGE, **CREATED, "GET /containers/c1/archive": report()})
    found = images(client).build(SPEC, print)
    assert (found.installed, found.architecture, found.base.note) == (True, "amd64", "the official image, present here")
    assert not [request for request in asked if "/build" in request]
    assert "DELETE /containers/c1?v=True&link=False&force=True" in asked


def test_an_install_that_ran_out_of_time_is_made_anew_past_the_cache(by_script: Connect) -> None:
    late = report(outcome="failed", error={"kind": "timeout", "line": "late"})
    client, asked = by_script(
        {"GET /images/.*": IMAGE, **CREATED, "GET /containers/c1/archive": late, "POST /build": (200, built("ok"))}
    )
    assert not images(client).build(SPEC, print).installed
    (request,) = [request for request in asked if "/build" in request]
    assert "ATTEMPT" in request


def test_an_image_without_a_report_is_none(by_script: Connect) -> None:
    gone: Answer = (404, {"message": "Could not find the file"})
    client, _ = by_script({"GET /images/.*": IMAGE, **CREATED, "GET /containers/c1/archive": gone})
    with pytest.raises(BuildFailed, match="carries no install report: Could not find the file"):
        images(client).build(SPEC, print)


def launch() -> Launch:
    image = BuiltImage(SPEC, "image:1", "sha256:1", BaseFacts("", "", "", ""), "amd64", {})
    return Launch(CELL.launch_id, image, CELL.variant, "app", 1, 4, tls=False, placement=Placement((0,), (1,), True))


def test_a_server_that_ends_at_once_is_told_in_its_own_words_and_removed(by_script: Connect) -> None:
    state = {"Running": False, "Status": "exited", "ExitCode": 3, "FinishedAt": "2026-01-01T00:00:00.5Z"}
    client, asked = by_script({
        **CREATED,
        "GET /containers/c1/json": (200, {"Id": "c1", "State": state, "Config": {"Tty": True}}),
        "POST /containers/c1/start": (500, {"message": "cannot join network of a non running container"}),
        "GET /containers/c1/logs": (200, b"ModuleNotFoundError: No module named 'app'\n"),
    })  # fmt: skip
    with pytest.raises(ServerFailed, match="exit code 3: ModuleNotFoundError"):
        Servers(RunContainers(client, "run")).start(launch())
    assert asked[-1].startswith("DELETE /containers/c1?")


def test_a_run_that_is_closed_makes_nothing_more_and_removes_its_own(by_script: Connect) -> None:
    listed = [{"Id": "c1", "Image": "i", "Names": ["/one"]}]
    client, asked = by_script({**CREATED, "GET /containers/json": (200, listed)})
    containers = RunContainers(client, "run-7")
    containers.close()
    with pytest.raises(ServerFailed, match="interrupted"):
        containers.create("image:1", {})
    assert any("run-7" in request and "owner" in request for request in asked)
    assert asked[-1].startswith("DELETE /containers/c1?")


def test_images_in_use_stay_and_are_told(by_script: Connect) -> None:
    client, asked = by_script({
        "DELETE /images/appserver-matrix/used:1": (409, {"message": "conflict: container c1 is using it"}),
        "DELETE /images/appserver-matrix/free:1": (200, []),
        "DELETE /images/sha256:stage": NO_IMAGE,
    })  # fmt: skip
    held = [
        Held("sha256:stage", (), "stage", 1, ()),
        Held("sha256:u", ("appserver-matrix/used:1",), "server", 1, ()),
        Held("sha256:f", ("appserver-matrix/free:1",), "server", 1, ()),
    ]
    removed, kept = remove_images(client, held)
    assert (removed, kept) == (2, ("appserver-matrix/used:1: conflict: container c1 is using it",))
    assert asked[-1].startswith("DELETE /images/sha256:stage")
