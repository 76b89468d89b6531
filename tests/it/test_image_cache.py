"""Images of servers share their layers, are built once, and are given back alone: on a real Docker Engine."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.docker.housekeeping import remove_images
from orchestrator.engines.docker.inventory import Held, held_images
from orchestrator.images.context import Context
from orchestrator.images.plan import ROOT, images_of
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix

pytestmark = pytest.mark.docker
RUN = "test-image-cache"


@pytest.fixture
def engine(client: Any) -> Iterator[DockerEngine]:
    """The images that it builds stay: they are what any run would build, and may use by now."""
    made = DockerEngine(RUN, client=client)
    yield made
    made.close()


def named(client: Any, reference: str) -> Held:
    return next(image for image in held_images(client) if reference in image.references)


def test_two_servers_share_base_and_frameworks_and_are_built_once(engine: DockerEngine, client: Any) -> None:
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    cells = expand(matrix, "installs", only=("waitress*slim·wheel*", "cheroot*slim·wheel*")).cells
    specs = images_of(matrix, cells)
    built = [engine.build(spec, print) for spec in specs]
    one, two = (named(client, image.reference) for image in built)
    assert one.layers[:-1] == two.layers[:-1]  # base, frameworks and apps; what follows is the server
    assert (one.layers[-1][1] or 0) < 0.1 * one.size_bytes
    told: list[str] = []
    again = [DockerEngine(RUN, client=client).build(spec, told.append) for spec in specs]
    assert [image.digest for image in again] == [image.digest for image in built]
    assert not [text for text in told if text.startswith("building")]


def build_image(client: Any, name: str, dockerfile: str) -> None:
    context = Context({"Dockerfile": (dockerfile.encode(), False)})
    client.images.build(fileobj=io.BytesIO(context.tar()), custom_context=True, tag=name, rm=True)


def test_an_install_that_ran_out_of_time_is_tried_again(engine: DockerEngine, client: Any) -> None:
    matrix = load_matrix(ROOT / "matrix.yaml").matrix
    spec = images_of(matrix, expand(matrix, "installs", only=("waitress*slim·wheel*",)).cells)[0]
    whole = engine.build(spec, print)
    shared = named(client, whole.reference).layers[:-1]
    report = '{"outcome": "failed", "seconds": {"build": 900}, "error": {"kind": "timeout", "line": "too late"}}'
    build_image(client, whole.reference, f"FROM {whole.digest}\nUSER 0\nRUN echo '{report}' >/opt/venv/install.json\n")
    told: list[str] = []
    again = engine.build(spec, told.append)
    assert [text for text in told if text.startswith("building")]
    assert again.install["outcome"] == whole.install["outcome"] != "failed"
    assert named(client, again.reference).layers[:-1] == shared  # only the install is made anew


def test_clean_takes_what_is_ours_and_nothing_else(client: Any) -> None:
    ours, others = "appserver-matrix/test-clean:1", "test-clean-not-ours:1"
    for name, label in ((ours, "appserver-matrix.kind=image"), (others, "somebody.else=1")):
        build_image(client, name, f"FROM scratch\nLABEL {label} appserver-matrix.run={RUN}\nCOPY Dockerfile /\n")
    try:
        mine = named(client, ours)
        assert not [image for image in held_images(client) if others in image.references]
        assert remove_images(client, [mine]) == (1, ())
        assert not [image for image in held_images(client) if ours in image.references]
        assert client.images.get(others)
    finally:
        for name in (ours, others):
            with suppress(Exception):
                client.images.remove(name)
