"""`matrix wheels` on a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.table import Table

from orchestrator.images.simple_index import TARGETS, Coverage


def wheels_table(found: Mapping[str, Coverage | None]) -> Table:
    """One row per distribution, one column per libc and architecture."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("distribution", "version", *(" ".join(target) for target in TARGETS), "sdist"):
        table.add_column(title)
    for name, covered in found.items():
        if covered is None:
            table.add_row(name, "not in the index")
        else:
            labels = (covered.labels(*target) or "—" for target in TARGETS)
            table.add_row(name, str(covered.version), *labels, "yes" if covered.sdist else "—")
    return table
