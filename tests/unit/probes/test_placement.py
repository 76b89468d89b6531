"""Server and load generator get different CPUs wherever there are two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engines.protocol import Placement
from orchestrator.errors import SpecError
from orchestrator.matrix.models import Cpus
from orchestrator.probes.placement import place


@pytest.mark.parametrize(
    ("available", "server", "client"),
    [
        ((0, 1), (0,), (1,)),
        ((0, 1, 2), (0, 1), (2,)),
        ((0, 1, 2, 3), (1, 2), (3,)),
        ((2, 5), (2,), (5,)),
    ],
)
def test_auto(available: tuple[int, ...], server: tuple[int, ...], client: tuple[int, ...]) -> None:
    assert place(Cpus(), available) == Placement(server, client)


def test_one_cpu_is_shared_and_said() -> None:
    assert place(Cpus(), (0,)) == Placement((0,), (0,), shared=True)


@given(st.sets(st.integers(0, 200), min_size=2))
def test_auto_never_shares(cpus: set[int]) -> None:
    found = place(Cpus(), sorted(cpus))
    assert not set(found.server) & set(found.client)
    assert set(found.server) | set(found.client) <= cpus


@pytest.mark.parametrize(
    ("cpus", "message"),
    [
        (Cpus(server="0-1", client="1"), "may not share"),
        (Cpus(client="9"), "there is no CPU 9"),
        (Cpus(server="a-b"), "no list of CPUs"),
    ],
)
def test_mistakes(cpus: Cpus, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        place(cpus, (0, 1, 2, 3))


def test_lists_and_ranges() -> None:
    assert place(Cpus(server="0,2-3", client="1"), (0, 1, 2, 3)) == Placement((0, 2, 3), (1,))
