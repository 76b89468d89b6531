"""Which images of ours a Docker Engine holds, and which of their layers they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from orchestrator.engines.docker.options import LABEL_KIND

LABEL_STAGE = "appserver-matrix.stage"
PREFIX = "appserver-matrix/"
LAYER_WITHOUT_BYTES = {"WORKDIR", "COPY", "ADD"}
"""Instructions that make a layer even of no bytes: an empty folder. A RUN that changed nothing makes none."""

Kind = Literal["server", "shared", "loadgen", "standin", "stage"]


@dataclass(frozen=True)
class Held:
    """An image of ours. `layers`: digest and bytes, from the base up; bytes are None where the history does not fit.

    `stage` is what a build of several stages leaves behind: nothing runs in it, but the next build finds it made.
    """

    id: str
    references: tuple[str, ...]
    kind: Kind
    size_bytes: int
    layers: tuple[tuple[str, int | None], ...]


def held_images(client: Any) -> tuple[Held, ...]:
    """`client` is what `docker.connect` gives. Ours are those with our label and our name, and our unnamed stages."""
    found: dict[str, Mapping[str, Any]] = {}
    for label in (LABEL_KIND, LABEL_STAGE):
        found |= {item["Id"]: item for item in client.api.images(filters={"label": label})}
    return tuple(held for item in found.values() if (held := _held(client, item)) is not None)


def _held(client: Any, item: Mapping[str, Any]) -> Held | None:
    named = [name for name in item["RepoTags"] or () if not name.startswith("<none>")]
    references = tuple(name for name in named if name.startswith(PREFIX))
    if named and not references:
        return None
    digests = client.api.inspect_image(item["Id"])["RootFS"]["Layers"]
    layers = layer_sizes(client.api.history(item["Id"]), digests)
    return Held(item["Id"], references, kind_of(references), int(item["Size"]), layers)


def kind_of(references: Sequence[str]) -> Kind:
    """By name: an image on a stand-in inherits the stand-in's labels, so that these do not tell."""
    if not references:
        return "stage"
    name = references[0].removeprefix(PREFIX).partition(":")[0]
    if name.startswith("standin-"):
        return "standin"
    return "shared" if name == "shared" else "loadgen" if name == "loadgen" else "server"


def layer_sizes(history: Sequence[Mapping[str, Any]], digests: Sequence[str]) -> tuple[tuple[str, int | None], ...]:
    """Each layer with its bytes. `history` is the engine's: the newest first, with lines that made no layer."""
    sizes = [int(line["Size"]) for line in reversed(history) if _made_a_layer(line)]
    if len(sizes) != len(digests):
        return tuple((digest, None) for digest in digests)
    return tuple(zip(digests, sizes, strict=True))


def _made_a_layer(line: Mapping[str, Any]) -> bool:
    instruction = str(line["CreatedBy"]).removeprefix("/bin/sh -c #(nop)").split()[:1]
    return bool(line["Size"]) or bool(LAYER_WITHOUT_BYTES.intersection(instruction))


def own_bytes(images: Sequence[Held]) -> Iterator[int | None]:
    """Bytes of each image that no other of these images has; None where they are not known."""
    users = Counter(digest for image in images for digest in {digest for digest, _ in image.layers})
    for image in images:
        own = [size for digest, size in image.layers if users[digest] == 1]
        yield None if None in own else sum(size or 0 for size in own)


def total_bytes(images: Sequence[Held]) -> int:
    """Bytes of all layers, each counted once."""
    sizes = {digest: size for image in images for digest, size in image.layers}
    return sum(size or 0 for size in sizes.values())
