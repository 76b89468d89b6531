"""The noise bench without servers: orders, covariates, lines, the table, and a round on the memory engine."""

from __future__ import annotations

import argparse
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench import noise_bench
from bench.lines import read_lines
from bench.noise_table import ABOVE, BELOW, DESIGNS, SENTINEL, Block, Design, Turn, sample_of, table
from bench.slices import Slice
from orchestrator.engines.memory import Behaviour, MemoryEngine


def turn(side: str, cpu_us: float, client_us: float = 5.0) -> Turn:
    return Turn(side, Slice(1e6 / cpu_us, cpu_us, client_us, 0.3, 0.0))


@pytest.mark.parametrize("design", DESIGNS)
def test_each_pass_holds_both_servers(design: Design) -> None:
    order = noise_bench.order_of(design, 9, "seed")
    servers = [side for side in order if side != SENTINEL]
    assert all({first, second} == {ABOVE, BELOW} for first, second in zip(servers[::2], servers[1::2], strict=True))
    assert order == noise_bench.order_of(design, 9, "seed") != noise_bench.order_of(design, 9, "other")


def test_abba_mirrors_every_second_pass() -> None:
    order = noise_bench.order_of("abba", 8, "seed")
    assert all(order[at : at + 4] == order[at : at + 4][::-1] for at in range(0, 16, 4))


def test_a_sentinel_stands_on_both_sides_of_every_slice() -> None:
    order = noise_bench.order_of("sentinel", 6, "seed")
    assert order[0] == order[-1] == SENTINEL
    assert all((one == SENTINEL) != (other == SENTINEL) for one, other in pairwise(order))


def test_covariates_belong_to_their_slices() -> None:
    turns = [turn(SENTINEL, 10), turn(BELOW, 50, 4), turn(SENTINEL, 40), turn(ABOVE, 60, 3), turn(SENTINEL, 90)]
    sample = sample_of(Block({}, 1, "sentinel", 0.5, turns, 3.0), "cpu_us")
    found = [sample.above, sample.below, *sample.controls["sentinel"], *sample.controls["client"]]
    assert np.exp(found).ravel() == pytest.approx([60, 50, 60, 20, 3, 4])


def test_costs_grow_with_noise_in_either_metric() -> None:
    quick, slow = (turn(ABOVE, cost).slice for cost in (50, 60))
    assert [slow.cost(metric) - quick.cost(metric) for metric in ("rps", "cpu_us")] == pytest.approx(
        [math.log(1.2)] * 2
    )


def test_a_line_holds_the_whole_block() -> None:
    block = Block({"server": "a"}, 2, "abba", 0.5, [turn(ABOVE, 50), turn(BELOW, 51)], 1.5)
    assert Block.from_json(block.as_json()) == block
    assert block.load_s == 0.5
    with pytest.raises(ValueError, match="not of this bench"):
        Block.from_json({"schema": "method-bench/1"})


def simulated(number: int, noise: float, passes: int = 100) -> Block:
    random = np.random.default_rng(number)
    turns = [turn(side, 50 * math.exp(random.normal(0, noise))) for _ in range(passes) for side in (ABOVE, BELOW)]
    return Block({}, number, "random", 0.1, turns, 30.0)


def test_the_table_shows_the_half_width_that_is_known() -> None:
    """60 s of slices of 0.1 s: of a mean 1.96 · 0.1 · √(2 / 600) = 1.13 %, of medians 1.25 as much."""
    cells = table([simulated(number, 0.1) for number in range(6)]).splitlines()[-1].split()
    assert cells[:7] == ["random", "0.1", "s", "60", "s", "180", "s"]
    figures = [float(cell.rstrip("%")) for cell in cells[7:11]]
    widths = dict(zip(("sd", "median", "median²", "mean"), figures, strict=True))
    assert widths["sd"] == pytest.approx(10, rel=0.05)
    assert widths["mean"] == pytest.approx(1.13, rel=0.08)
    assert widths["median"] / widths["mean"] == pytest.approx(1.25, rel=0.12)


def test_a_round_measures_each_order_and_length(tmp_path: Path) -> None:
    names = ("uvicorn/standard", "uvicorn/standard-again")
    engine = MemoryEngine({name: Behaviour(rps=5_000, noise=0.05) for name in names})
    options = argparse.Namespace(
        server=names[0], connections=8, iterations=0, seconds=4.0, rounds=2, sentinel="null", orders=list(DESIGNS),
        lengths=[0.1, 0.5], out=tmp_path / "noise.jsonl",
    )  # fmt: skip
    for number in (1, 2):
        noise_bench.one_round(engine, options, number, noise_bench.settings_of(options, engine))
    assert engine.started == engine.stopped == 6
    blocks = [Block.from_json(line) for line in read_lines(options.out)]
    assert {(block.design, block.slice_s) for block in blocks} == {(d, s) for d in DESIGNS for s in options.lengths}
    assert [block.load_s for block in blocks] == [pytest.approx(2.0)] * 12
    text = noise_bench.report(options.out, "command")
    assert text.count("\nsentinel ") == 4
