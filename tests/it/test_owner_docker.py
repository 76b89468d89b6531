"""What an engine removes at its end is what its own process made, also where another run has the same label."""

from __future__ import annotations

import io
from typing import Any

import pytest

from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.docker.housekeeping import remove_containers
from orchestrator.engines.docker.options import LABEL_KIND, LABEL_OWNER, LABEL_RUN, owner
from orchestrator.images.context import Context

pytestmark = pytest.mark.docker
RUN, NAME = "test-owner", "test-owner:1"


def test_containers_of_another_process_under_the_same_label_stay(client: Any) -> None:
    context = Context({"Dockerfile": (b"FROM scratch\nCOPY Dockerfile /\n", False)})
    client.images.build(fileobj=io.BytesIO(context.tar()), custom_context=True, tag=NAME, rm=True)
    owners = (owner(), "elsewhere:1")
    try:
        mine, others = (
            client.containers.create(NAME, ["none"], labels={LABEL_RUN: RUN, LABEL_KIND: "server", LABEL_OWNER: whose})
            for whose in owners
        )
        DockerEngine(RUN, client=client).close()
        left = client.containers.list(all=True, filters={"label": f"{LABEL_RUN}={RUN}"})
        assert [container.id for container in left] == [others.id]
        assert mine.id != others.id
    finally:
        remove_containers(client, RUN)
        client.images.remove(NAME)
