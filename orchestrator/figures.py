"""All figures of a cell, one row each: what it is, which way is better, how it is stored, exported and shown.

The summary of a record, `show` of a view, the columns and places of a report's tables, the CSV, docs/ and the JSON
Schemas are made from these rows, in their order. How each is taken from slices: orchestrator/judge/figures.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from orchestrator.layout.text import short, three
from orchestrator.stored import Stored

RatioBound = Literal["", ">=", "<=", "?"]
Better = Literal["more", "less", ""]
Number = float | int | None
REQUIRED = ...
"""Every record with figures has it: there are none of before it."""
PERCENTILES = ("p50", "p75", "p90", "p95", "p99", "p99.9", "mean")


class Estimate(Stored):
    """An estimate with its 95 % interval; null bounds where a single round gives none."""

    value: float = Field(description="the estimate")
    low: float | None = Field(
        description="lower end of the 95 % interval (hierarchical bootstrap); null where there is one round only"
    )
    high: float | None = Field(description="upper end")


Raw = Estimate | float | None


@dataclass(frozen=True)
class Shown:
    """A figure as readers see it.

    `name`: in `show` of a view, where `viewed`, and in the program. `column`: over a column of figures, its unit in it;
    `heading`: over places whose texts have the unit themselves. `{base}` stands in both for what ratios refer to.
    `scale`: of a unit in raw ones. `sign`: what may stand before it: that of a lower bound, or of a bounded ratio.
    `loop`: which loop it says something of, where a view shows both: what came in is given in an open one, latency is a
    queue's in a closed one. `of`: from what is stored; by default the figure itself. `about`: what it is, where the
    figure's own text says more.
    """

    name: str
    column: str
    heading: str = ""
    unit: str = ""
    scale: float = 1.0
    number: Callable[[float], str] = three
    sign: Literal["", "bound", "ratio"] = ""
    ratio: bool = False
    loop: Literal["", "open", "closed"] = ""
    viewed: bool = False
    of: Callable[[Any], Raw] | None = None
    about: str = ""


@dataclass(frozen=True)
class Figure:
    """A field of a record's summary.

    `kind`: its type there; `before`: its value in records of before it was. `better`: which way, if either. `by`: the
    keys of one that holds several, each with columns of its own in the CSV, named by `column`. `last`: these columns
    stand behind those of all others.
    """

    name: str
    about: str
    kind: Any = float | None
    before: object = REQUIRED
    better: Better = ""
    shown: tuple[Shown, ...] = ()
    by: tuple[str, ...] = ()
    column: str = ""
    last: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the CSV."""
        names = [(self.column or self.name).format(part) for part in self.by or ("",)]
        if self.kind in (Estimate, Estimate | None):
            return tuple(f"{name}{end}" for name in names for end in ("", "_low", "_high"))
        if self.kind == dict[str, Estimate]:
            return tuple(f"{name}{end}" for name in names for end in ("_low", "_high"))
        return tuple(names)

    def exported(self, value: Any) -> dict[str, Number | str]:
        """Its columns of the CSV with their values; those of which nothing is known are left out."""
        if not self.by:
            return dict(_columns(self.name, value))
        known = [(self.column.format(part), value[part]) for part in self.by if part in value]
        columns = dict(column for name, one in known for column in _columns(name, one))
        return {name: one for name, one in columns.items() if name in self.columns}


def _columns(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Estimate):
        yield from ((name, value.value), (f"{name}_low", value.low), (f"{name}_high", value.high))
    else:
        yield name, value


def _whole_number(value: float) -> str:
    return f"{value:.0f}"


def _percent(name: str, number: Callable[[float], str] = three, column: str = "", *, viewed: bool = True) -> Shown:
    return Shown(name, column or name, unit=" %", scale=0.01, number=number, viewed=viewed)


_SHARE = {"p50": "half", "p99": "99 %", "p99.9": "99.9 %"}


def _latency(name: str, *, viewed: bool = True) -> Shown:
    def of(summary: Any) -> Raw:
        found: Raw = summary.latency_intervals_us.get(name, summary.latency_us.get(name))
        return found

    return Shown(
        name,
        f"{name} ms",
        name,
        " ms",
        1e3,
        loop="open",
        viewed=viewed,
        of=of,
        about=f"latency: {_SHARE[name]} of the answers took less",
    )


def _bytes(name: str, column: str, heading: str, *, viewed: bool = False) -> Shown:
    return Shown(name, column, heading, " MB", 1e6, viewed=viewed)


def _switches(summary: Any) -> Raw:
    found = (summary.voluntary_switches_per_request, summary.involuntary_switches_per_request)
    return None if None in found else sum(number for number in found if number is not None)


FIGURES: tuple[Figure, ...] = (
    Figure("slices", "how many", int, last=True),
    Figure("requests", "right answers", int, last=True),
    Figure(
        "errors", "requests without a right answer", int, better="less", last=True,
        shown=(Shown("errors", "errors", unit=" err", number=_whole_number, viewed=True),),
    ),
    Figure(
        "rps", "right answers per second", Estimate, better="more",
        shown=(Shown("rps", "requests/s", number=short, sign="bound", loop="closed", viewed=True),),
    ),
    Figure(
        "rate_asked", "of an open loop: requests per second that were asked for, the centre over rounds; else null",
        before=None, shown=(Shown("asked", "asked/s", number=short),),
    ),
    Figure(
        "rate_share",
        "of an open loop: share of the requests due in the slices that had a right answer when their slice ended",
        before=None, better="more", shown=(_percent("in-time", column="in time", viewed=False),),
    ),
    Figure(
        "ratio",
        "`rps` over the reference's, the centre of the quotients of slices of the same pass; null where that has none, "
        "and for an open loop, whose throughput is what was asked for",
        Estimate | None, better="more",
        shown=(
            Shown(
                "ratio", "× {base}", unit="×", number=short, sign="ratio", ratio=True, loop="closed", viewed=True
            ),
        ),
    ),
    Figure(
        "ratio_bound",
        "`>=`, `<=` or `?` where `client_bound` makes the ratio a lower bound, an upper bound, or neither; else empty",
        RatioBound,
    ),
    Figure(
        "ceiling_share",
        "`rps` over that of the null responder under the same load; null where that was not measured",
        shown=(
            Shown(
                "ceiling", "ceiling", unit=" %", scale=0.01, number=_whole_number, viewed=True,
                of=lambda summary: summary.ceiling_share or None,
            ),
        ),
    ),
    Figure(
        "between", "spread of the rounds' medians: standard deviation over median; null for one round", better="less",
        shown=(_percent("between"),), last=True,
    ),
    Figure(
        "within", "the same of the slices inside a round", better="less", shown=(_percent("within"),), last=True,
    ),
    Figure(
        "latency_us",
        "`mean`, and each percentile (`p50` … `p99.9`) that ten samples or more lie beyond, of all slices' histograms "
        "added up",
        dict[str, float], better="less", shown=(_latency("p50"), _latency("p99"), _latency("p99.9", viewed=False)),
        by=PERCENTILES, column="latency_{}_us",
    ),
    Figure(
        "latency_intervals_us",
        "of an open loop: those percentiles that every round has the samples for. Empty for a closed one, whose "
        "latencies are a queue's and say what `rps` says",
        dict[str, Estimate], before={}, better="less", by=("p50", "p99"), column="latency_{}_us",
    ),
    Figure(
        "cpu_us_per_request", "CPU of the server's whole process tree for each right answer", Estimate | None,
        better="less", shown=(Shown("cpu", "CPU µs/req", "CPU/req", " µs", viewed=True),),
    ),
    Figure(
        "cpu_ratio",
        "right answers for each second of the tree's CPU over the reference's, pass by pass: above 1 it needs less CPU "
        "for a request. It holds where `client_bound` leaves `ratio` a bound",
        Estimate | None, before=None, better="more",
        shown=(Shown("cpu-ratio", "req/CPU × {base}", unit="×", ratio=True, viewed=True),),
    ),
    Figure(
        "cpu_user_us_per_request",
        "what of `cpu_us_per_request` was spent in user space. The total is exact, its parts go by the ticks of 10 ms "
        "of all slices together",
        before=None, better="less", shown=(Shown("cpu-user", "user", unit=" µs"),),
    ),
    Figure(
        "cpu_system_us_per_request", "the rest of it, spent in the kernel", before=None, better="less",
        shown=(Shown("cpu-system", "system", unit=" µs"),),
    ),
    Figure(
        "voluntary_switches_per_request",
        "context switches of the tree's threads for each right answer: they waited. Those of threads that ended inside "
        "a slice are not known",
        before=None, better="less", shown=(Shown("switches", "switches/req", of=_switches),),
    ),
    Figure("involuntary_switches_per_request", "the same: they were preempted", before=None, better="less"),
    Figure("client_cpu_us_per_request", "CPU of the load generator for each right answer", float),
    Figure(
        "memory_bytes",
        "resident set of the whole tree, the largest at the end of any slice. Pages that processes share count in each",
        int | None, better="less", shown=(_bytes("memory", "MB", "memory", viewed=True),),
    ),
    Figure(
        "memory_pss_bytes",
        "the same with shared pages divided among the processes that share them, those of other running servers too; "
        "null where it may not be read",
        int | None, better="less",
    ),
    Figure(
        "memory_idle_bytes",
        "resident set of the whole tree at rest, after the check (some twenty requests) and before any load: the "
        "largest of the rounds",
        int | None, before=None, better="less", shown=(_bytes("memory-idle", "idle MB", "idle memory", viewed=True),),
    ),
    Figure("memory_idle_pss_bytes", "the same with shared pages divided", int | None, before=None, better="less"),
    Figure(
        "memory_peak_bytes",
        "the largest resident set that each process ever had, added up: the tree never had more at a time, unless a "
        "process ended",
        int | None, before=None, better="less",
    ),
    Figure(
        "memory_per_worker_bytes",
        "`memory_pss_bytes` over the workers of the cell: a worker with its share of the master and its helpers; null "
        "where the former is",
        int | None, before=None, better="less", shown=(_bytes("memory-per-worker", "MB/worker", "memory/worker"),),
    ),
    Figure("processes", "of the tree, the most", int | None),
    Figure(
        "connections_per_request", "connections opened anew in the timed stretches, for each right answer",
        shown=(Shown("connections", "conn/req", "connections/req"),),
    ),
    Figure("ready_s", "centre of the rounds' `ready_s`", better="less"),
)  # fmt: skip
SHOWN: Mapping[str, tuple[Figure, Shown]] = {one.name: (figure, one) for figure in FIGURES for one in figure.shown}
"""By the name under which a figure is shown."""
EXPORTED = (*(one for one in FIGURES if not one.last), *(one for one in FIGURES if one.last))
"""In the order of their columns in the CSV."""

if TYPE_CHECKING:
    FigureName = str
else:
    FigureName = Literal[tuple(name for name, (_, one) in SHOWN.items() if one.viewed)]


def summary_fields() -> dict[str, tuple[Any, Any]]:
    """The fields of a record's summary."""
    return {figure.name: (figure.kind, Field(figure.before, description=figure.about)) for figure in FIGURES}
