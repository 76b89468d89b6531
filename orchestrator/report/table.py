"""One table per comparison, in the form that every renderer lays out: all texts decided, raw figures beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter

from orchestrator.evidence.model import Record, RunFile, Summary
from orchestrator.layout.text import NONE, listed
from orchestrator.report.attempt import Attempt, plainly
from orchestrator.report.compared_run import ComparedRun, compared_run
from orchestrator.report.conclusions import conclusions, warnings
from orchestrator.report.measures import MEASURES, whole
from orchestrator.report.standings import Figure, Standing, common, decisive, key, letters_of, standings

COSTS = "What it costs"
NO_QUOTIENT = (
    "A ratio is the centre of the ratios of neighbouring slices: it need not be the quotient of the figures beside it."
)
NOTES: Mapping[Figure, str] = {
    "ratio": "× {base}",
    "rps": "requests/s",
    "asked": "asked/s, which was given",
}
EFFECTS = {
    "void": "no figure is printed",
    "unranked": "stands outside the order",
    "bound": "a lower bound, never ranked as if exact",
    "mark": "marked",
}


@dataclass(frozen=True)
class Row:
    """A cell with figures. `texts`: one per column of the table; `summary`: the raw figures, also of void rows.

    `rank` and `rank_last`: the first and the last place that the intervals leave open; None outside the order.
    """

    id: str
    name: str
    baseline: bool
    rank: int | None
    rank_last: int | None
    void: bool
    bound: bool
    marks: str
    texts: tuple[str, ...]
    summary: Summary


@dataclass(frozen=True)
class Missing:
    """A cell without figures."""

    id: str
    name: str
    outcome: str
    reason: str
    marks: str


@dataclass(frozen=True)
class Footnote:
    """A verdict: what it does, its cure, and what it saw in each row, by name."""

    letter: str
    rule: str
    effect: str
    cure: str
    rows: tuple[tuple[str, str], ...]

    @property
    def seen(self) -> str:
        """a: 4 workers on 1 CPU; b, c: 8 workers on 1 CPU."""
        by_text: dict[str, list[str]] = {}
        for name, text in self.rows:
            by_text.setdefault(text, []).append(name)
        return "; ".join(f"{', '.join(names)}: {text}" for text, names in by_text.items())


@dataclass(frozen=True)
class Grid:
    """Texts alone. `main`: the columns that stay where there is no room for all."""

    columns: tuple[str, ...]
    main: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Table:
    """`warnings` concern all rows; `conclusions` say what the figures hold up and what not; `note`: how to read it.

    `main`: the columns that stay where there is no room for all. `costs`: CPU and memory, the cheapest row first.
    """

    title: str
    common: str
    columns: tuple[str, ...]
    main: tuple[str, ...]
    rows: tuple[Row, ...]
    costs: Grid | None
    note: str
    missing: tuple[Missing, ...]
    footnotes: tuple[Footnote, ...]
    warnings: tuple[str, ...]
    conclusions: tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """`figure`: printed as — where the row is void. `main`: see Grid."""

    title: str
    text: Callable[[Standing, Summary], str]
    figure: bool = True
    main: bool = False


def tables(run: RunFile, records: Sequence[Record], attempt: Attempt = plainly) -> tuple[Table, ...]:
    """One per comparison, in the order in which they first stand in the run."""
    compared = compared_run(run, records)
    groups = compared.groups(compared.records)
    made = [attempt(f"The table of {compared.title(group[0])}", partial(_table, compared, group)) for group in groups]
    return tuple(chain.from_iterable(made))


def footnotes(made: Sequence[Standing], letters: Mapping[tuple[str, str], str]) -> tuple[Footnote, ...]:
    """One per rule and effect, with every row that it concerns."""
    found = []
    for (rule, effect), letter in letters.items():
        hits = [(e.name, v) for e in made for v in e.record.verdicts if key(v) == (rule, effect)]
        rows = tuple((name, _seen(verdict.text, verdict.slices, verdict.of)) for name, verdict in hits)
        found.append(Footnote(letter, rule, effect, hits[0][1].cure, rows))
    return tuple(found)


def missing(made: Sequence[Standing]) -> tuple[Missing, ...]:
    """Those without figures."""
    return tuple(_missing(standing) for standing in made if standing.record.summary is None)


def _missing(standing: Standing) -> Missing:
    record = standing.record
    reason = record.reason.line if record.reason else NONE
    return Missing(record.id, standing.name, outcome_of(record), reason, standing.marks)


def outcome_of(record: Record) -> str:
    """In words: not installed."""
    return record.outcome.replace("_", " ")


def measured(name: str, base: str, *, main: bool = False) -> Column:
    """The column of a figure."""
    return Column(
        MEASURES[name].column.format(base=base), lambda standing, summary: whole(name, standing, summary), main=main
    )


RANK = Column("rank", lambda standing, _: str(standing.rank or ""), False, True)
SERVER = Column("server", lambda standing, _: standing.name, False, True)
MARKS = Column("marks", lambda standing, _: standing.marks, False, True)
_COSTS = (
    "cpu", "cpu-user", "cpu-system", "cpu-ratio", "switches", "memory-idle", "memory", "memory-per-worker",
)  # fmt: skip


def columns(base: str, first: Figure) -> tuple[Column, ...]:
    """Of a closed loop: how much is answered, the figure that rows stand by first."""
    figures = [measured(name, base, main=True) for name in foremost(("rps", "ratio"), first)]
    others = (measured(name, base) for name in ("p50", "p99", "ceiling", "connections"))
    return (RANK, SERVER, *figures, *others, MARKS)


def foremost(names: Sequence[str], first: Figure) -> list[str]:
    """The names of figures, the one that rows stand by before the others."""
    return sorted(names, key=lambda name: name != first)


def note_of(figures: Collection[Figure], base: str, rows: str = "Rows") -> str:
    """What rows stand by, and that a ratio is no quotient of figures beside it."""
    told = listed([NOTES[figure].format(base=base) for figure in NOTES if figure in figures])
    return f"{rows} stand by {told}.{'' if 'asked' in figures else f' {NO_QUOTIENT}'}"


def open_columns(base: str) -> tuple[Column, ...]:
    """Of an open one: how late what came in is answered."""
    main = ("asked", "in-time", "p50", "p99")
    figures = (measured(name, base, main=name in main) for name in (*main, "p99.9", "connections"))
    return (SERVER, *figures, MARKS)


def cost_columns(base: str) -> tuple[Column, ...]:
    """What a request costs, whichever side was the limit."""
    return (SERVER, *(measured(name, base, main=name in ("cpu", "memory")) for name in _COSTS))


def _table(compared: ComparedRun, records: Sequence[Record]) -> Table:
    letters = letters_of(records)
    made = standings(compared, records, letters)
    first = decisive(made)
    shown = open_columns(compared.sign) if records[0].cell.open else columns(compared.sign, first)
    return Table(
        title=compared.title(records[0]),
        common=common(records),
        columns=tuple(column.title for column in shown),
        main=tuple(column.title for column in shown if column.main),
        rows=rows(made, shown),
        costs=_costs(made, cost_columns(compared.sign)),
        note=note_of({first}, compared.sign) if made[0].record.summary else "",
        missing=missing(made),
        footnotes=footnotes(made, letters),
        warnings=warnings(compared, made),
        conclusions=conclusions(compared, made),
    )


def rows(made: Sequence[Standing], shown: Sequence[Column]) -> tuple[Row, ...]:
    """Of those with figures."""
    return tuple(_row(standing, standing.record.summary, shown) for standing in made if standing.record.summary)


def _row(standing: Standing, summary: Summary, shown: Sequence[Column]) -> Row:
    return Row(
        id=standing.record.id,
        name=standing.name,
        baseline=standing.record.baseline,
        rank=standing.rank.first if standing.rank else None,
        rank_last=standing.rank.last if standing.rank else None,
        void=standing.void,
        bound=standing.bound,
        marks=standing.marks,
        texts=tuple(NONE if column.figure and standing.void else column.text(standing, summary) for column in shown),
        summary=summary,
    )


def _costs(made: Sequence[Standing], shown: Sequence[Column]) -> Grid | None:
    """Columns without any figure are left out; None where that leaves none."""
    found = [(standing, summary) for standing in made if (summary := standing.record.summary) and not standing.void]
    found.sort(key=lambda pair: pair[1].cpu_us_per_request.value if pair[1].cpu_us_per_request else float("inf"))
    texts = {column: [column.text(*pair) for pair in found] for column in shown}
    kept = [column for column in shown if {*texts[column]} - {NONE}]
    if len(kept) < 2:
        return None
    titles, main = (tuple(map(attrgetter("title"), some)) for some in (kept, [c for c in kept if c.main]))
    return Grid(titles, main, tuple(zip(*(texts[column] for column in kept), strict=True)))


def _seen(text: str, slices: int, of: int) -> str:
    return f"{text}, in {slices} of {of} slices" if of else text
