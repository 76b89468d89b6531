"""`matrix images`: what of ours the Docker Engine holds, its size, and how much of it is shared."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from orchestrator.engines.docker.inventory import Held, own_bytes, total_bytes
from orchestrator.layout.text import NONE, count, scaled


def images_table(images: Sequence[Held]) -> Table:
    """One row per named image. `own`: what goes away with it alone; `shared`: layers that others of ours use too."""
    table = Table("image", "kind", box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("size MB", "shared MB", "own MB"):
        table.add_column(title, justify="right")
    rows = [(image, own) for image, own in zip(images, own_bytes(images), strict=True) if image.references]
    for image, own in sorted(rows, key=lambda row: (row[0].kind, row[0].references)):
        shared = None if own is None else image.size_bytes - own
        sizes = (scaled(size, 1e6) for size in (image.size_bytes, shared, own))
        table.add_row("\n".join(image.references), image.kind, *sizes)
    return table


def images_summary(images: Sequence[Held]) -> str:
    """How many, and what they take together, each layer counted once."""
    named = [image for image in images if image.references]
    standins = sum(image.kind == "standin" for image in named)
    apart = sum(image.size_bytes for image in images)
    return (
        f"{count(len(named), 'image')}, {standins} of them stand-ins for official bases, and "
        f"{count(len(images) - len(named), 'stage')} of builds: "
        f"{scaled(total_bytes(images), 1e6) if images else NONE} MB with every layer counted once, "
        f"{scaled(apart, 1e6)} MB if nothing were shared. `matrix clean --images` removes them."
    )
