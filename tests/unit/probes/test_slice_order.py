"""The order of a pass: random, the same for the same seed, with what is compared near in time."""

from __future__ import annotations

from itertools import groupby

import pytest

from orchestrator.engines.protocol import Placement
from orchestrator.images.plan import ROOT
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.probes.launching import Plan
from orchestrator.probes.load.measure import slice_order

MATRIX = load_matrix(ROOT / "matrix.yaml").matrix


def plan_of(suite: str, seed: int = 1) -> Plan:
    selection = expand(MATRIX, suite)
    placement = Placement((0,), (1,))
    return Plan(MATRIX, selection.cells, {}, selection.schedule, placement, seed, selection.references())


@pytest.mark.parametrize("suite", ["throughput", "aa", "workers", "images"])
def test_what_is_compared_follows_each_other(suite: str) -> None:
    plan = plan_of(suite)
    for at in range(4):
        order = slice_order(plan, 1, at)
        assert sorted(cell.id for cell in order) == sorted(cell.id for cell in plan.cells)
        groups = [key for key, _ in groupby(plan.references.get(cell.id, cell.id) for cell in order)]
        assert len(groups) == len(set(groups))


def test_a_pass_has_an_order_of_its_own_which_the_seed_repeats() -> None:
    plan = plan_of("aa")
    orders = [tuple(cell.id for cell in slice_order(plan, round_, at)) for round_ in (1, 2) for at in range(4)]
    assert len(set(orders)) == len(orders)
    assert [cell.id for cell in slice_order(plan, 1, 0)] == list(orders[0])
    assert [cell.id for cell in slice_order(plan_of("aa", seed=2), 1, 0)] != list(orders[0])
    first = {
        order.index(cell.id) < order.index(plan.references[cell.id]) for order in orders for cell in plan.cells[1::2]
    }
    assert first == {True, False}
