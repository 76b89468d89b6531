"""What is compared, or runs on one server, is measured side by side; the rest is not."""

from __future__ import annotations

import pytest

from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix

MATRIX = load_matrix(ROOT / "matrix.yaml").matrix
LOADS = [name for name, suite in MATRIX.suites.items() if suite.probe == "load"]


@pytest.mark.parametrize("suite", LOADS)
def test_nothing_that_is_compared_or_shares_a_server_is_apart(suite: str) -> None:
    selection = expand(MATRIX, suite)
    groups = selection.side_by_side(selection.cells)
    assert sorted(cell.id for group in groups for cell in group) == sorted(cell.id for cell in selection.cells)
    group_of = {cell.id: at for at, group in enumerate(groups) for cell in group}
    for one in ("comparison", "launch"):
        places: dict[object, set[int]] = {}
        for cell in selection.cells:
            key = selection.comparison(cell) if one == "comparison" else cell.launch_id
            places.setdefault(key, set()).add(group_of[cell.id])
        assert all(len(found) == 1 for found in places.values())
    assert all(group_of[own] == group_of[other] for own, other in selection.references().items())


def test_cells_that_are_never_compared_are_measured_one_group_after_the_other() -> None:
    selection = expand(MATRIX, "native")
    groups = selection.side_by_side(selection.cells)
    assert [{(cell.workers, cell.tls) for cell in group} for group in groups] == [
        {(1, False)}, {(1, True)}, {(4, False)}, {(4, True)},
    ]  # fmt: skip
    assert len(expand(MATRIX, "throughput").side_by_side(expand(MATRIX, "throughput").cells)) == 1
