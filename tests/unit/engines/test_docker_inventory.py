"""Which layers of which size images have, from an engine's history; what they share."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.cli.images import images_summary, images_table
from orchestrator.engines.docker.inventory import Held, Kind, kind_of, layer_sizes, own_bytes, total_bytes

NOP = "/bin/sh -c #(nop) "


def line(created_by: str, size: int = 0) -> dict[str, Any]:
    return {"CreatedBy": created_by, "Size": size}


CLASSIC = [
    line(f"{NOP} LABEL appserver-matrix.kind=image"),
    line(f"{NOP} USER 1000:1000"),
    line(f"{NOP}COPY dir:cd36 in /opt/apps", 131_000),
    line('|1 RUN_SYSTEM= /bin/sh -c grep -q \'"outcome": "failed"\' /opt/venv/install.json || sh /opt/system.sh'),
    line(f"{NOP}COPY dir:6495 in /", 1_370_000),
    line(f"{NOP} ARG RUN_SYSTEM"),
    line(f"{NOP}WORKDIR /opt/apps"),
    line(f"{NOP} ENV PATH=/opt/venv/bin"),
    line("", 118_000_000),
]
BUILDKIT = [
    line("USER 1000:1000"),
    line("COPY --from=apps /opt/apps /opt/apps # buildkit", 131_000),
    line("RUN /bin/sh -c sh /opt/system.sh # buildkit", 4_000),
    line("WORKDIR /opt/apps"),
    line("ENV PATH=/opt/venv/bin"),
    line('CMD ["python3"]'),
    line("# debian.sh --arch 'amd64' out/ 'trixie'", 78_000_000),
]


@pytest.mark.parametrize(
    ("history", "sizes"),
    [(CLASSIC, [118_000_000, 0, 1_370_000, 131_000]), (BUILDKIT, [78_000_000, 0, 4_000, 131_000])],
    ids=["classic", "buildkit"],
)
def test_layers_get_their_sizes_from_the_history(history: list[dict[str, Any]], sizes: list[int]) -> None:
    digests = [f"sha256:{at}" for at in range(len(sizes))]
    assert layer_sizes(history, digests) == tuple(zip(digests, sizes, strict=True))


def test_a_history_that_does_not_fit_gives_no_sizes() -> None:
    assert layer_sizes(CLASSIC, ["a", "b"]) == (("a", None), ("b", None))


@pytest.mark.parametrize(
    ("reference", "kind"),
    [
        ("appserver-matrix/waitress:slim-wheel-py3.13-0a", "server"),
        ("appserver-matrix/shared:0a", "shared"),
        ("appserver-matrix/loadgen:0a", "loadgen"),
        ("appserver-matrix/standin-musl:py3.13-0a-builder", "standin"),
    ],
)
def test_kinds_are_told_by_name(reference: str, kind: Kind) -> None:
    assert kind_of([reference]) == kind


def held(name: str, kind: Kind, *layers: tuple[str, int | None]) -> Held:
    return Held(
        name, (f"appserver-matrix/{name}:1",) if name else (), kind, sum(size or 0 for _, size in layers), layers
    )


def test_what_images_share_is_counted_once() -> None:
    images = [
        held("one", "server", ("base", 100), ("frameworks", 30), ("one", 2)),
        held("two", "server", ("base", 100), ("frameworks", 30), ("two", 5)),
        held("old", "server", ("unknown", None)),
        held("", "stage", ("base", 100), ("scrap", 7)),
    ]
    assert list(own_bytes(images)) == [2, 5, None, 7]
    assert total_bytes(images) == 144
    assert images_table(images).row_count == 3
    assert "3 images, 0 of them stand-ins" in images_summary(images)
    assert images_summary([]).startswith("0 images")
