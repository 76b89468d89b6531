"""Quotas and heat, read from trees of files as Linux has them, and the differences of two readings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from loadgen import throttle
from loadgen.contract import Quota, Throttled
from loadgen.throttle import Spent, Throttle

CASES = yaml.safe_load((Path(__file__).parents[2] / "cases" / "loadgen" / "throttle.yaml").read_text(encoding="utf-8"))


def planted(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="ascii")
    for process in root.glob("proc/*"):
        if not (process / "root").exists():
            (process / "root").symlink_to(root)
    return root


@pytest.mark.parametrize("name", CASES)
def test_what_is_found(name: str, tmp_path: Path) -> None:
    case: dict[str, Any] = CASES[name]
    root = planted(tmp_path, case["files"])
    found = throttle.read(throttle.counters(7, root))
    quotas = [None if quota is None else [quota.periods, quota.ns] for quota in (found.client, found.server)]
    assert quotas == [case["found"]["client"], case["found"]["server"]]
    assert found.heat == case["found"].get("heat")


def test_no_server_is_watched() -> None:
    assert throttle.read(throttle.counters(None)).server is None


def test_the_difference_of_two_readings() -> None:
    before = Throttle(Spent(2, 10**9), Spent(0, 0), {"cpu0": 5, "cpu1": 9})
    after = Throttle(Spent(5, 3 * 10**9 // 2), None, {"cpu0": 7, "cpu1": 9, "cpu2": 4})
    assert throttle.between(before, after) == Throttled(
        client=Quota(periods=3, seconds=0.5),
        server=None,  # it ended
        heat={"cpu0": 2, "cpu1": 0},  # cpu2 came meanwhile
    )
    assert throttle.between(Throttle(None, None, None), after).heat is None
