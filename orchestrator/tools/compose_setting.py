"""What `matrix compose` takes from this machine: the CPUs, the base images that are really here, the CA bundle."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.engines.docker.bases import standin_reference
from orchestrator.engines.docker.client import connect, cpus_of, has_image
from orchestrator.engines.local import own_cpus
from orchestrator.engines.protocol import Placement
from orchestrator.errors import EnvironmentProblem
from orchestrator.images.host import host_settings
from orchestrator.images.plan import ROOT, Base, images_of
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.models import Matrix
from orchestrator.probes.placement import place


def compose_setting(matrix: Matrix, cells: Sequence[Cell]) -> tuple[Placement, dict[Base, str]]:
    """Placement, and the reference of each base: a stand-in only where it is here and the official image is not."""
    images = images_of(matrix, tuple(cells))
    wanted = {base: base.official for image in images for base in (image.base, image.build_base) if base}
    try:
        client = connect(5)
    except EnvironmentProblem:
        return place(matrix.cpus, own_cpus()), wanted
    for base, official in wanted.items():
        if base.standin and not has_image(client, official) and has_image(client, standin_reference(base)):
            wanted[base] = standin_reference(base)
    return place(matrix.cpus, cpus_of(client)), wanted


def lay_ca() -> bool:
    """Put the host's CA bundle where the builds of Compose look for it (never committed); False where there is none."""
    bundle = host_settings().ca
    if bundle:
        (ROOT / "images" / "host" / "ca.crt").write_bytes(bundle)
    return bool(bundle)
