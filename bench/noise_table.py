"""A data set of noise_bench.py, and what each estimator makes of the same slices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal

import numpy as np

from bench import estimators
from bench.estimators import Array, Estimator, Precision, Sample, apart, at_load, controlled, half_width, pairs
from bench.lines import Line
from bench.slices import METRICS, Metric, Slice, metrics_of

SCHEMA = "noise-bench/1"
ABOVE, BELOW, SENTINEL = "baseline", "again", "sentinel"
Design = Literal["random", "abba", "sentinel"]
DESIGNS: Mapping[Design, str] = {
    "random": "each pass in an order of its own",
    "abba": "every second pass in the order of the one before it, backwards",
    "sentinel": "as random, with a slice of the sentinel before and after every slice",
}
WANTED_S = 60.0


@dataclass(frozen=True)
class Turn:
    """A slice and the server that had it."""

    side: str
    slice: Slice


@dataclass(frozen=True)
class Block:
    """Passes over the servers in one round, all slices of one length. `turns` are in the order of time.

    `took_s`: wall-clock seconds, warm-ups included. `settings` are the same in all blocks of a file.
    """

    settings: Mapping[str, Any]
    round: int
    design: Design
    slice_s: float
    turns: Sequence[Turn]
    took_s: float

    def as_json(self) -> Line:
        turns = [{"side": turn.side, **asdict(turn.slice)} for turn in self.turns]
        return {"schema": SCHEMA, **asdict(self), "turns": turns}

    @classmethod
    def from_json(cls, line: Line) -> Block:
        """Raises ValueError where the line is of another bench."""
        if line.get("schema") != SCHEMA:
            raise ValueError(f"not of this bench: schema {line.get('schema')!r}, not {SCHEMA!r}")
        fields = {name: value for name, value in line.items() if name not in ("schema", "turns")}
        turns = [Turn(side, Slice(**rest)) for side, rest in (_apart(turn) for turn in line["turns"])]
        return cls(**fields, turns=turns)

    def slices(self, side: str) -> list[Slice]:
        return [turn.slice for turn in self.turns if turn.side == side]

    @property
    def load_s(self) -> float:
        """Timed seconds of load on one of the compared servers."""
        return len(self.slices(ABOVE)) * self.slice_s


def _apart(turn: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    return turn["side"], {name: value for name, value in turn.items() if name != "side"}


def sample_of(block: Block, metric: Metric) -> Sample:
    """Logarithms of costs, pass by pass, with the covariates that this block has.

    `client`: the client's CPU per request in the same slice. `sentinel`: the mean cost of the sentinel before and
    after the slice, whose expectation is the same whoever stands between.
    """
    costs = {side: _costs(block.slices(side), metric) for side in (ABOVE, BELOW)}
    controls = {"client": (_client(block.slices(ABOVE)), _client(block.slices(BELOW)))}
    if block.design == "sentinel":
        controls["sentinel"] = (_around(block, ABOVE, metric), _around(block, BELOW, metric))
    return Sample(costs[ABOVE], costs[BELOW], controls)


def _costs(slices: Sequence[Slice], metric: Metric) -> Array:
    return np.array([one.cost(metric) for one in slices])


def _client(slices: Sequence[Slice]) -> Array:
    return np.log([one.client_us for one in slices])


def _around(block: Block, side: str, metric: Metric) -> Array:
    turns = block.turns
    return np.array(
        [
            fmean(near.slice.cost(metric) for near in turns[max(0, at - 1) : at + 2] if near.side == SENTINEL)
            for at, turn in enumerate(turns)
            if turn.side == side
        ]
    )


# --- the table --------------------------------------------------------------------------------------------------------

PLAIN: Mapping[str, Estimator] = {
    "median": apart(estimators.median),
    "median²": pairs(estimators.median),
    "mean": apart(estimators.mean),
    "trim": apart(estimators.trimmed),
    "trim²": pairs(estimators.trimmed),
    "HL": apart(estimators.hodges_lehmann),
    "HL²": pairs(estimators.hodges_lehmann),
    "quiet": apart(estimators.quiet),
}
CONTROLLED = ("sentinel", "client")
LEGEND = """\
95 % half-width of the ratio of a server to itself, from the slices alone (passes drawn anew inside each round), as it
would be after {wanted:.0f} s of load on each. median: of each server's slices; median²: of the ratios of slices of the
same pass, as the product has it; trim: 20 % trimmed mean of logarithms; HL: Hodges-Lehmann; quiet: lowest tenth.
sentinel: mean, with the sentinel's neighbouring slices as control variate, its slope from the other rounds (sound).
client: the same with the client's CPU per request in the same slice: sound in A/A pairs alone, not to be used.
sd: of a slice's logarithm. r: its correlation with sentinel and client. rounds: half-width of the mean by Student's t
over rounds, whatever launches differ by; both: by that and the slices together (`estimators.by_components`). wall:
seconds that so much load on each of the two servers takes."""


def table(blocks: Sequence[Block]) -> str:
    """Everything that a data set says, for people."""
    metrics = metrics_of([turn.slice for block in blocks for turn in block.turns])
    return "\n\n".join([LEGEND.format(wanted=WANTED_S), *(_of_metric(blocks, metric) for metric in metrics)])


def _of_metric(blocks: Sequence[Block], metric: Metric) -> str:
    names = (*PLAIN, *CONTROLLED)
    head = f"{'order':9}{'slice':>7}{'had':>7}{'wall':>7}{'sd':>7}" + "".join(f"{name:>9}" for name in names)
    kinds = dict.fromkeys((block.design, block.slice_s) for block in blocks)
    rows = [
        _row([block for block in blocks if (block.design, block.slice_s) == kind], metric)
        for kind in sorted(kinds, key=lambda kind: (list(DESIGNS).index(kind[0]), kind[1]))
    ]
    return "\n".join([METRICS[metric], f"{head}{'rounds':>9}{'both':>9}{'r':>12}", *rows])


def _row(blocks: Sequence[Block], metric: Metric) -> str:
    samples = [sample_of(block, metric) for block in blocks]
    had_s = sum(block.load_s for block in blocks)
    wall_s = sum(block.took_s for block in blocks) * WANTED_S / had_s
    found: dict[str, Precision | None] = {
        name: estimators.precision(samples, [estimator] * len(samples)) for name, estimator in PLAIN.items()
    }
    found |= {name: _controlled(samples, name) for name in CONTROLLED}
    widths = "".join(f"{_percent(half_width(one) if one else None, had_s):>9}" for one in found.values())
    honest = "".join(f"{_percent(half, had_s):>9}" for half in _over_rounds(samples))
    spread = math.sqrt(fmean(float(side.var(ddof=1)) for sample in samples for side in (sample.above, sample.below)))
    return (
        f"{blocks[0].design:9}{f'{blocks[0].slice_s:g} s':>7}{had_s:>5.0f} s{wall_s:>5.0f} s{spread:>7.1%}"
        f"{widths}{honest}{_correlations(samples):>12}"
    )


def _over_rounds(samples: Sequence[Sample]) -> tuple[float | None, float | None]:
    """Half-widths of the mean of pairs by Student's t over rounds, and by both components of its variance."""
    if len(samples) < 2:
        return None, None
    located = [estimators.located_mean(sample.above - sample.below) for sample in samples]
    return estimators.by_rounds([one.value for one in located])[1], estimators.by_components(located)[1]


def _percent(half: float | None, had_s: float) -> str:
    return "—" if half is None else f"{at_load(half, had_s, WANTED_S):.2%}"


def _controlled(samples: Sequence[Sample], name: str) -> Precision | None:
    if any(name not in sample.controls for sample in samples) or len(samples) < 2:
        return None
    return estimators.precision(samples, [controlled(name, slope) for slope in estimators.slopes(samples, name)])


def _correlations(samples: Sequence[Sample]) -> str:
    return " ".join(
        f"{estimators.correlation(samples, name):+.2f}" if name in samples[0].controls else "—" for name in CONTROLLED
    )
