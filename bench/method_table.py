"""What a session of method_bench.py found, the rules by which methods call two servers different, and the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from statistics import fmean, median
from typing import Any

import numpy as np

from bench import estimators
from bench.estimators import Array, Located, Location, wilson
from bench.lines import Line
from bench.slices import METRICS, Metric, Slice, metrics_of
from orchestrator.judge import stats

SCHEMA = "method-bench/1"
BASELINE, AGAIN, SLOW = "baseline", "again", "slow"

Side = str


@dataclass(frozen=True)
class Session:
    """`ours`: slices by side and round. `usual`: runs by side; the sides had their turns in the order of its keys.

    `settings` are the same in all sessions of a file; seconds are those of load on one server.
    """

    number: int
    settings: Mapping[str, Any]
    ours: Mapping[Side, Sequence[Sequence[Slice]]]
    usual: Mapping[Side, Sequence[Slice]]
    ours_s: float
    usual_s: float
    took_s: float

    def as_json(self) -> Line:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, line: Line) -> Session:
        """Raises ValueError where the line is of another bench."""
        if line.get("schema") != SCHEMA:
            raise ValueError(f"not of this bench: schema {line.get('schema')!r}, not {SCHEMA!r}")
        fields = {name: value for name, value in line.items() if name != "schema"}
        fields["ours"] = {
            side: [[Slice(**one) for one in r] for r in rounds] for side, rounds in fields["ours"].items()
        }
        fields["usual"] = {side: [Slice(**one) for one in runs] for side, runs in fields["usual"].items()}
        return cls(**fields)

    def rounds(self, side: Side, metric: Metric) -> list[list[float]]:
        return [[one.value(metric) or math.nan for one in slices] for slices in self.ours[side]]

    def runs(self, side: Side, metric: Metric) -> list[float]:
        return [one.value(metric) or math.nan for one in self.usual[side]]

    def neighbours(self, above: Side, below: Side, metric: Metric) -> tuple[float, float]:
        """Of each side the one run that stood nearest to the other side's."""
        order = list(self.usual)
        first = order.index(above) < order.index(below)
        return self.runs(above, metric)[-1 if first else 0], self.runs(below, metric)[0 if first else -1]


def _slices(lines: Sequence[Mapping[str, Any]]) -> list[Slice]:
    return [Slice(**line) for line in lines]


@dataclass(frozen=True)
class Answer:
    """What a method says of two servers. `half_width` of its 95 % interval, as a logarithm, where it has one."""

    ratio: float
    different: bool
    half_width: float | None = None


Judge = Callable[[Session, Side, Side, Metric], Answer]


@dataclass(frozen=True)
class Method:
    """`share`: which part of the session's load on a server it needs, ours or the usual way's."""

    name: str
    judge: Judge
    seconds: Callable[[Session], float]


def ours(session: Session, above: Side, below: Side, metric: Metric) -> Answer:
    """The product's ratio and its interval."""
    found = stats.ratio(session.rounds(above, metric), session.rounds(below, metric), seed=session.number)
    if found.low is None or found.high is None:
        return Answer(found.value, False)
    return Answer(found.value, not found.low <= 1 <= found.high, math.log(found.high / found.low) / 2)


def single(session: Session, above: Side, below: Side, metric: Metric, *, over: float) -> Answer:
    one, other = session.neighbours(above, below, metric)
    return Answer(one / other, abs(one / other - 1) > over)


def of_three(session: Session, above: Side, below: Side, metric: Metric, *, over: float) -> Answer:
    ratio = median(session.runs(above, metric)) / median(session.runs(below, metric))
    return Answer(ratio, abs(ratio - 1) > over)


def ranges_apart(session: Session, above: Side, below: Side, metric: Metric) -> Answer:
    one, other = session.runs(above, metric), session.runs(below, metric)
    return Answer(median(one) / median(other), min(one) > max(other) or max(one) < min(other))


def students(session: Session, above: Side, below: Side, metric: Metric) -> Answer:
    """Student's two-sample t with pooled variance, on the logarithms of the runs, at the level of 5 %."""
    one, other = np.log(session.runs(above, metric)), np.log(session.runs(below, metric))
    freedom = len(one) + len(other) - 2
    pooled = (one.var() * len(one) + other.var() * len(other)) / freedom
    half = stats.student(freedom) * math.sqrt(pooled * (1 / len(one) + 1 / len(other)))
    return _answer(float(one.mean() - other.mean()), half)


def candidate(session: Session, above: Side, below: Side, metric: Metric, *, location: Location, pairs: bool) -> Answer:
    """Another estimator on the same slices: its value in each round, and Student's interval over the rounds."""
    logs = [[np.log(values) for values in session.rounds(side, metric)] for side in (above, below)]
    made = [float(location(a - b) if pairs else location(a) - location(b)) for a, b in zip(*logs, strict=True)]
    return _answer(*estimators.by_rounds(made))


def components(
    session: Session, above: Side, below: Side, metric: Metric, *, locate: Callable[[Array], Located]
) -> Answer:
    """An estimator on pairs of neighbouring slices, with the interval of `estimators.by_components`."""
    both = zip(session.rounds(above, metric), session.rounds(below, metric), strict=True)
    return _answer(*estimators.by_components([locate(np.log(one) - np.log(other)) for one, other in both]))


def over_passes(session: Session, above: Side, below: Side, metric: Metric) -> Answer:
    """Student's interval over all pairs of neighbouring slices, as if every launch were the same."""
    one, other = (np.log(list(chain(*session.rounds(side, metric)))) for side in (above, below))
    return _answer(*estimators.by_rounds(list(one - other)))


def _answer(value: float, half: float) -> Answer:
    return Answer(math.exp(value), abs(value) > half, half)


METHODS = (
    Method("ours: 95 % interval excludes 1", ours, lambda s: s.ours_s),
    *(
        Method(f"one run each: over {over:.0%} apart", partial(single, over=over), lambda s: s.usual_s / 3)
        for over in (0.02, 0.05)
    ),
    *(
        Method(f"median of three runs: over {over:.0%} apart", partial(of_three, over=over), lambda s: s.usual_s)
        for over in (0.02, 0.05)
    ),
    Method("three runs: ranges do not overlap", ranges_apart, lambda s: s.usual_s),
    Method("three runs: Student's t, 5 %", students, lambda s: s.usual_s),
)
"""What is compared. The usual way's runs are whole, one server after the other."""

CANDIDATES = (
    *(
        Method(f"{text}, t over rounds", partial(candidate, location=location, pairs=pairs), lambda s: s.ours_s)
        for text, location, pairs in (
            ("medians", estimators.median, False),
            ("means of logs", estimators.mean, False),
            ("20 % trimmed means", estimators.trimmed, False),
            ("Hodges-Lehmann", estimators.hodges_lehmann, False),
            ("20 % trimmed means of pairs", estimators.trimmed, True),
        )
    ),
    *(
        Method(f"{text} of pairs, two components", partial(components, locate=locate), lambda s: s.ours_s)
        for text, locate in (
            ("means of logs", estimators.located_mean),
            ("20 % trimmed means", estimators.located_trimmed),
        )
    ),
    Method("means of logs, t over passes", over_passes, lambda s: s.ours_s),
)
"""Other estimators on the same slices as ours; the product does not use them."""


TOGETHER = (2, 4)
"""So many sessions are also judged as one, as if it had been that much longer."""


def together(sessions: Sequence[Session], count: int) -> list[Session]:
    """Disjoint groups of `count` sessions, each with the rounds of all its sessions; what is left over is left out."""
    groups = [sessions[at : at + count] for at in range(0, len(sessions) - count + 1, count)]
    return [
        replace(
            group[0],
            ours={side: [*chain(*(one.ours[side] for one in group))] for side in group[0].ours},
            ours_s=sum(one.ours_s for one in group),
        )
        for group in groups
    ]


@dataclass(frozen=True)
class Row:
    """A method over all sessions: counts of declared differences, half-widths and seconds of load per server."""

    name: str
    sessions: int
    false: int
    found: int
    half_width: float | None
    seconds: float


def row(method: Method, sessions: Sequence[Session], metric: Metric) -> Row:
    """`found` counts those alone that go the right way: slower, or more CPU."""
    same = [method.judge(session, AGAIN, BASELINE, metric) for session in sessions]
    slow = [method.judge(session, SLOW, BASELINE, metric) for session in sessions]
    right = [answer for answer in slow if answer.different and (answer.ratio < 1) == (metric == "rps")]
    widths = [answer.half_width for answer in (*same, *slow) if answer.half_width is not None]
    return Row(
        name=method.name,
        sessions=len(sessions),
        false=sum(answer.different for answer in same),
        found=len(right),
        half_width=median(widths) if widths else None,
        seconds=fmean(method.seconds(session) for session in sessions),
    )


def share(count: int, of: int) -> str:
    low, high = wilson(count, of)
    return f"{count:>3} of {of} = {count / of:>4.0%} ({low:.0%}–{high:.0%})"


def _line(*fields: str) -> str:
    return f"{fields[0]:42} {fields[1]:>25} {fields[2]:>25} {fields[3]:>10} {fields[4]:>9}".rstrip()


def table(sessions: Sequence[Session]) -> str:
    """Everything that the sessions say, for people. Shares have Wilson's 95 % intervals in brackets."""
    slices = [one for session in sessions for rounds in session.ours.values() for round_ in rounds for one in round_]
    return "\n\n".join(_of_metric(sessions, metric) for metric in metrics_of(slices))


def _of_metric(sessions: Sequence[Session], metric: Metric) -> str:
    slow_down = sessions[0].settings["slow_down"]
    head = _line("method", "A/A declared different", f"{slow_down:.0%} slow-down found", "half-width", "load/side")
    blocks = [
        f"{METRICS[metric]}: slow over baseline {_typical(sessions, SLOW, metric)}, "
        f"again over baseline {_typical(sessions, AGAIN, metric)} (median of ours and its range)",
        head,
        *(_text(row(method, sessions, metric)) for method in METHODS),
        *(
            _text(row(replace(METHODS[0], name=f"ours, {count} sessions together"), grouped, metric))
            for count in TOGETHER
            if len(grouped := together(sessions, count)) > 1
        ),
        "  other estimators on the slices of ours:",
        *(_text(row(method, sessions, metric)) for method in CANDIDATES),
    ]
    return "\n".join(blocks)


def _typical(sessions: Sequence[Session], side: Side, metric: Metric) -> str:
    ratios = [ours(session, side, BASELINE, metric).ratio for session in sessions]
    return f"{median(ratios):.3f} ({min(ratios):.3f}–{max(ratios):.3f})"


def _text(found: Row) -> str:
    half_width = "—" if found.half_width is None else f"{found.half_width:.1%}"
    return _line(
        found.name, share(found.false, found.sessions), share(found.found, found.sessions), half_width,
        f"{found.seconds:.0f} s",
    )  # fmt: skip
