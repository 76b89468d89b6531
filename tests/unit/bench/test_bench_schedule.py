"""The split of a suite's time into rounds and slices: from variances and costs that are known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from bench.schedule_bench import (
    REFERENCE,
    Costs,
    Logs,
    Variances,
    best_slices,
    best_split,
    split_of,
    table,
    variances,
)
from orchestrator.errors import SpecError


def drawn(between: float, within: float, rounds: int, slices: int, comparisons: int) -> list[Logs]:
    coins = np.random.default_rng(3)
    levels = coins.normal(0, between, (comparisons, rounds, 1))
    return [[*map(list, one)] for one in levels + coins.normal(0, within, (comparisons, rounds, slices))]


@pytest.mark.parametrize(("between", "within"), [(0.05, 0.02), (0.02, 0.05), (0.0, 0.1)])
def test_variances_that_are_known_are_found(between: float, within: float) -> None:
    found = variances(drawn(between, within, 3, 4, 4000))
    assert found is not None
    assert math.sqrt(found.between) == pytest.approx(between, rel=0.1, abs=0.012)
    assert math.sqrt(found.within) == pytest.approx(within, rel=0.05)


def test_rounds_of_one_slice_and_single_rounds_tell_no_variances() -> None:
    assert variances([[[0.1], [0.2]], [[0.1, 0.2]]]) is None


def test_the_split_is_that_of_kalibera_and_jones() -> None:
    assert best_slices(Variances(0.01**2, 0.03**2), Costs(8, 2)) == pytest.approx(2 * 3)
    assert best_slices(Variances(0.0, 0.03**2), Costs(8, 2)) == math.inf


def test_rounds_that_differ_are_worth_more_than_slices_and_slices_where_they_do_not() -> None:
    launches = best_split(Variances(0.1**2, 0.01**2), Costs(1, 1), 40)
    noise = best_split(Variances(0.0, 0.1**2), Costs(1, 0.1), 40)
    assert launches is not None and noise is not None
    assert (launches.rounds, launches.slices) == (20, 1)
    assert noise.slices > 10
    assert launches.half_width < split_of(Variances(0.1**2, 0.01**2), 5, 7).half_width


def test_a_time_that_buys_no_three_rounds_has_no_split() -> None:
    assert best_split(Variances(1, 1), Costs(10, 1), 20) is None


def test_the_table_of_the_reference_has_a_row_for_each_run_with_ratios() -> None:
    rows = table([REFERENCE / "aa", REFERENCE / "startup", REFERENCE / "method.jsonl"]).splitlines()
    assert [row.split("  ")[0] for row in rows[1:]] == ["aa", "method, first half", "method, second half"]
    assert "5 × 8" in rows[1]


def test_runs_without_ratios_have_no_table() -> None:
    with pytest.raises(SpecError, match="no run here has ratios"):
        table([REFERENCE / "startup"])


def test_a_file_without_lines_has_no_table(tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        table([tmp_path / "none.jsonl"])
