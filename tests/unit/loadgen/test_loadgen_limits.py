"""Limits of control groups, read from trees of files as Linux has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from loadgen import limits
from loadgen.contract import KernelLimits
from tests.unit.loadgen.test_loadgen_throttle import planted

CASES = yaml.safe_load((Path(__file__).parents[2] / "cases" / "loadgen" / "limits.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_what_is_found(name: str, tmp_path: Path) -> None:
    case: dict[str, Any] = CASES[name]
    assert limits.read("7", planted(tmp_path, case["files"])) == KernelLimits(**case["found"])


def test_the_own_limits_are_numbers_or_none() -> None:
    read = limits.read("self")
    assert msgspec.convert(msgspec.to_builtins(read), KernelLimits) == read
