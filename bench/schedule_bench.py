"""How many rounds, and slices in each, know a ratio best in the same time: variances and costs of finished runs.

A round costs fresh starts and checks, a slice its warm-up, its stretch and a question; rounds differ by their launches
and by the hour, slices by what else the machine does. Kalibera and Jones ("Rigorous benchmarking in reasonable time",
ISMM 2013) minimise the variance of the mean for a given time: sqrt(cost of a round / cost of a slice · variance of
slices / variance of rounds) slices in a round. That leaves out that few rounds tell little of their own variance, for
which an interval pays with Student's quantile; so the last columns try every split of the same time on simulated
rounds: the mean half-width of a ratio's 95 % interval, and the one that one in twenty exceeds.

Nothing is measured here: `python -m bench.schedule_bench [RUN…]` reads folders of runs, by default results/reference.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

import numpy as np

from bench.console import finish
from bench.lines import read_lines
from bench.method_table import AGAIN, BASELINE, Session
from orchestrator.errors import SpecError
from orchestrator.evidence.model import Record, RoundRecord, RunFile
from orchestrator.evidence.store import read_run
from orchestrator.images.plan import ROOT
from orchestrator.judge.stats import NORMAL, student

REFERENCE = ROOT / "results" / "reference"
LEAST_ROUNDS = 3
"""Two tell next to nothing of their own variance: Student's quantile is 12.7."""
MOST_SLICES = 24
SIMULATED = 2000

Logs = Sequence[Sequence[float]]
"""Logarithms of the ratios of one comparison: one list per round, one value per pass."""


@dataclass(frozen=True)
class Variances:
    """Of the logarithm of a ratio: `between` rounds, beyond what their slices explain, and `within` a round."""

    between: float
    within: float


@dataclass(frozen=True)
class Costs:
    """Seconds for one cell: of a round apart from its slices, and of a slice with all that comes with it."""

    round_s: float
    slice_s: float


@dataclass(frozen=True)
class Split:
    """A schedule; half of a ratio's 95 % interval with it, as a logarithm: the mean, and what one in twenty exceeds."""

    rounds: int
    slices: int
    half_width: float
    widest: float


def variances(comparisons: Sequence[Logs]) -> Variances | None:
    """The typical comparison's: medians over those of two or more rounds of two or more passes; None without any.

    The components of a one-way analysis of variance (Searle, Casella & McCulloch, Variance Components, 1992, 3.6), from
    medians over comparisons, since single ones differ a hundredfold; each is put right by the median of χ² for its
    degrees of freedom.
    """
    known = [rounds for rounds in comparisons if len(rounds) > 1 and all(len(one) > 1 for one in rounds)]
    if not known:
        return None
    within = median(_within(rounds) for rounds in known)
    of_means = median(_of_means(rounds) for rounds in known)
    slices = fmean(len(one) for rounds in known for one in rounds)
    return Variances(max(0.0, of_means - within / slices), within)


def _within(rounds: Logs) -> float:
    freedom = sum(len(one) - 1 for one in rounds)
    return sum(float(np.var(one)) * len(one) for one in rounds) / freedom / _median_of_chi2(freedom)


def _of_means(rounds: Logs) -> float:
    return float(np.var([fmean(one) for one in rounds], ddof=1)) / _median_of_chi2(len(rounds) - 1)


def _median_of_chi2(freedom: int) -> float:
    """Over its mean (Wilson & Hilferty, PNAS 17, 1931)."""
    return (1 - 2 / (9 * freedom)) ** 3


def best_slices(of: Variances, costs: Costs) -> float:
    """Kalibera and Jones: slices in a round; infinite where rounds differ by nothing but their slices."""
    if not of.between:
        return math.inf
    return math.sqrt(costs.round_s / costs.slice_s * of.within / of.between)


def split_of(of: Variances, rounds: int, slices: int) -> Split:
    """Simulated: rounds that differ so, and their slices, with intervals as `estimators.by_components` makes them.

    That is the product's interval without its bootstrap. A single slice tells no variance of its own: then all that
    rounds differ by counts as theirs.
    """
    coins = np.random.default_rng(1)
    levels = coins.normal(0, math.sqrt(of.between), (SIMULATED, rounds, 1))
    drawn = levels + coins.normal(0, math.sqrt(of.within), (SIMULATED, rounds, slices))
    between = drawn.mean(axis=2).var(axis=1, ddof=1) / rounds
    within = drawn.var(axis=2, ddof=1).mean(axis=1) / slices / rounds if slices > 1 else np.zeros(SIMULATED)
    share = np.maximum(0, 1 - within / between)
    many = student(rounds * (slices - 1)) if slices > 1 else NORMAL
    widths = (many + share * (student(rounds - 1) - many)) * np.sqrt(np.maximum(between, within))
    return Split(rounds, slices, float(widths.mean()), float(np.quantile(widths, 0.95)))


def best_split(of: Variances, costs: Costs, total_s: float) -> Split | None:
    """The narrowest interval that `total_s` seconds on one cell buy; None where they buy no three rounds."""
    splits = [
        split_of(of, rounds, slices)
        for slices in range(1, MOST_SLICES + 1)
        if (rounds := int(total_s / (costs.round_s + slices * costs.slice_s) + 1e-9)) >= LEAST_ROUNDS
    ]
    return min(splits, key=lambda split: split.half_width, default=None)


# --- what runs tell -------------------------------------------------------------------------------------------------


def comparisons_of(records: Sequence[Record]) -> list[Logs]:
    """Those of closed loops with what they refer to, pass by pass, as the product makes its ratios."""
    by_id = {record.id: record for record in records}
    return [
        _logs(record.rounds, by_id[record.reference].rounds)
        for record in records
        if record.reference in by_id and record.reference != record.id and not record.cell.open
    ]


def _logs(above: Sequence[RoundRecord], below: Sequence[RoundRecord]) -> Logs:
    made = ([_rps(one), _rps(other)] for one, other in zip(above, below, strict=False))
    logs = [[math.log(a / b) for a, b in zip(*both, strict=False) if a > 0 and b > 0] for both in made]
    return [one for one in logs if one]


def _rps(round_: RoundRecord) -> list[float]:
    return [float(slice_.load["rps"]) for slice_ in round_.slices]


def costs_of(run: RunFile, records: Sequence[Record]) -> Costs | None:
    """A slice costs what lies between its beginning and that of the next in time; the rest is the rounds'."""
    by_round = _beginnings(records)
    gaps = [after - before for times in by_round for before, after in pairwise(times)]
    took = run.costs.get("rounds_s")
    cells = sum(bool(record.rounds) for record in records)
    if not gaps or not took:
        return None
    slice_s = median(gaps)
    return Costs(max(0.0, took - slice_s * sum(map(len, by_round))) / len(by_round) / cells, slice_s)


def _beginnings(records: Sequence[Record]) -> list[list[float]]:
    """By round, the seconds at which its slices began."""
    found: dict[int, list[float]] = {}
    for round_ in (round_ for record in records for round_ in record.rounds):
        found.setdefault(round_.number, []).extend(_seconds(slice_.started) for slice_ in round_.slices)
    return [sorted(times) for times in found.values() if times]


def _seconds(instant: str) -> float:
    return float(np.datetime64(instant.partition("+")[0], "ms").astype(np.int64)) / 1000


# --- the table ------------------------------------------------------------------------------------------------------

HEAD = (
    "run",
    "slice",
    "between",
    "within",
    "a round",
    "a slice",
    "had",
    "± mean",
    "95 %",
    "K & J",
    "best",
    "± mean",
    "95 %",
)


def line_of_run(folder: Path) -> tuple[str, ...] | None:
    """The row of a run; None for one of another probe, or without a ratio."""
    run, records = read_run(folder)
    found, costs = variances(comparisons_of(records)), costs_of(run, records)
    if found is None or costs is None:
        return None
    schedule = run.schedule
    rounds, slices = max(len(record.rounds) for record in records), int(schedule["slices"])
    had = split_of(found, rounds, slices)
    best = best_split(found, costs, rounds * (costs.round_s + slices * costs.slice_s))
    asked = best_slices(found, costs)
    return (
        folder.name, f"{schedule['slice_s']:g} s", _percent(found.between**0.5), _percent(found.within**0.5),
        f"{costs.round_s:.2f} s", f"{costs.slice_s:.2f} s", *_split(had),
        "∞" if math.isinf(asked) else str(math.ceil(asked)), *(_split(best) if best else ("—",) * 3),
    )  # fmt: skip


def lines_of_sessions(path: Path) -> Iterator[tuple[str, ...]]:
    """Of a file of method_bench: each half of its sessions, a server against itself. It keeps no costs of a round."""
    sessions = [Session.from_json(line) for line in read_lines(path)]
    half = len(sessions) // 2
    for name, some in ((f"{path.stem}, first half", sessions[:half]), (f"{path.stem}, second half", sessions[half:])):
        found = variances([_session_logs(one) for one in some])
        if found:
            length = some[0].settings["schedule"]["slice_s"]
            yield (name, f"{length:g} s", _percent(found.between**0.5), _percent(found.within**0.5), *("—",) * 9)


def _session_logs(session: Session) -> Logs:
    both = zip(session.rounds(AGAIN, "rps"), session.rounds(BASELINE, "rps"), strict=True)
    return [[math.log(a / b) for a, b in zip(*sides, strict=True) if a > 0 and b > 0] for sides in both]


def table(paths: Sequence[Path]) -> str:
    """All that `paths` tell. Raises SpecError where no run has ratios of two rounds."""
    rows: list[tuple[str, ...]] = []
    for path in paths:
        rows += [*lines_of_sessions(path)] if path.suffix == ".jsonl" else filter(None, [line_of_run(path)])
    if not rows:
        raise SpecError("no run here has ratios over two rounds of two slices", next_step="name folders of runs")
    widths = [max(len(row[at]) for row in (HEAD, *rows)) for at in range(len(HEAD))]
    return "\n".join(_line(row, widths) for row in (HEAD, *rows))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        f"{text:<{width}}" if at == 0 else f"{text:>{width}}"
        for at, (text, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()


def _split(split: Split) -> tuple[str, str, str]:
    return f"{split.rounds} × {split.slices}", _percent(split.half_width), _percent(split.widest)


def _percent(share: float) -> str:
    return f"{share:.1%}"


def runs_in(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("*/run.json"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, help="folders of runs, or a file of bench.method_bench")
    paths = parser.parse_args().paths or [*runs_in(REFERENCE), REFERENCE / "method.jsonl"]
    return finish(lambda: None, lambda: table(paths))


if __name__ == "__main__":
    raise SystemExit(main())
