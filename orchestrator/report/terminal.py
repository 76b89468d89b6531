"""The report as rich renderables. Texts are never read as markup. A narrow terminal gets fewer columns, and is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from orchestrator.evidence.model import Record, RunFile
from orchestrator.layout.text import NONE, on_left, plain
from orchestrator.layout.text_table import TextTable
from orchestrator.report.document import document
from orchestrator.report.pivot import Pivot
from orchestrator.report.table import COSTS, EFFECTS, Footnote, Row, Table
from orchestrator.report.table import Grid as Texts

_INTERVAL = re.compile(r" \[[^]]*\]")
_LOUD = "bold white on red"


@dataclass(frozen=True)
class Fitted:
    """A grid whole where the terminal is wide enough, else without intervals, else with the main columns only."""

    texts: Texts
    styles: tuple[str, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        whole = self._grid(self.texts.columns, intervals=True)
        bare = self._grid(self.texts.columns, intervals=False)
        fitting = [grid for grid in (whole, bare) if _width(console, options, grid) <= options.max_width]
        yield fitting[0] if fitting else self._grid(self.texts.main, intervals=False)
        if not fitting or fitting[0] is not whole:
            yield _indented(
                f"the whole table, intervals too, needs {_width(console, options, whole)} columns", "yellow"
            )

    def _grid(self, columns: Sequence[str], *, intervals: bool) -> Grid:
        grid = _grid(columns)
        for row, style in zip(self.texts.rows, self.styles, strict=True):
            texts = dict(zip(self.texts.columns, row, strict=True))
            shown = [texts[column] if intervals else _INTERVAL.sub("", texts[column]) for column in columns]
            grid.add_row(*map(_text, shown), style=style)
        return grid


@dataclass(frozen=True)
class FittedPivot:
    """A pivot whole where the terminal is wide enough, else with as many figures of each place as fit, one at least."""

    pivot: Pivot

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        most = len(self.pivot.show)
        grids = [self._grid(number) for number in range(most, 0, -1)]
        fitting = [grid for grid in grids if _width(console, options, grid) <= options.max_width]
        shown = fitting[0] if fitting else grids[-1]
        yield shown
        if shown is not grids[0]:
            yield _indented(f"all figures need {_width(console, options, grids[0])} columns", "yellow")

    def _grid(self, figures: int) -> Grid:
        grid = _grid(("server", *self.pivot.headings))
        for row in self.pivot.rows:
            texts = [cell.said(figures) if cell else NONE for cell in row.cells]
            grid.add_row(*map(_text, (row.name, *texts)))
        return grid


def render(run: RunFile, records: Sequence[Record]) -> Group:
    """The whole report. What a reader needs first stands last, right above the prompt."""
    whole = document(run, records)
    parts: list[RenderableType] = [_text(whole.banner, _LOUD)] if whole.banner else []
    parts += [_text(fact, "dim") for fact in whole.facts]
    parts += [_text(f"Left out: {', '.join(item.names)}: {item.why}", "dim") for item in whole.left_out]
    parts += [pivot(item) for item in whole.pivots]
    parts += [table(item) for item in (*whole.flats, *whole.tables)]
    parts += [text_table(item) for item in whole.sheets]
    parts += [_warning(text) for text in whole.failures]
    parts += [Text(), *(_indented(note, "dim") for note in whole.notes)]
    parts += [_text(whole.banner, _LOUD)] if whole.banner else []
    return Group(*parts)


def table(item: Table) -> Group:
    """One comparison with all that belongs to it."""
    return Group(*_table(item))


def pivot(item: Pivot) -> Group:
    """Servers × the values of an axis."""
    return Group(
        _title(f"{item.title}: {item.told}", item.common),
        *map(_warning, item.warnings),
        FittedPivot(item),
        _indented(item.note, "dim"),
        *_footnotes(item.footnotes),
        *map(_text, item.conclusions),
    )


def text_table(item: TextTable) -> Group:
    """Its reasons first, so that table and legend stand right above the prompt."""
    made = _grid(item.columns)
    for row in item.rows:
        made.add_row(*map(_text, row))
    reasons = [_indented(line, "dim") for line in item.reasons]
    return Group(_title(item.title, item.common), *reasons, made, *(_indented(line, "dim") for line in item.legend))


def _table(item: Table) -> Iterator[RenderableType]:
    yield _title(item.title, item.common)
    yield from (_warning(text) for text in item.warnings)
    if item.rows:
        texts = Texts(item.columns, item.main, tuple(row.texts for row in item.rows))
        yield Fitted(texts, tuple(map(_style, item.rows)))
    if item.note:
        yield _indented(item.note, "dim")
    yield from _footnotes(item.footnotes)
    if item.costs:
        yield _text(COSTS, "bold")
        yield Fitted(item.costs, ("",) * len(item.costs.rows))
    yield from (_text(line) for line in item.conclusions)
    if item.missing:
        grid = _grid(("cell", "outcome", "reason", "marks"))
        for missing in item.missing:
            grid.add_row(*map(_text, (missing.name, missing.outcome, missing.reason, missing.marks)))
        yield grid


def _grid(columns: Sequence[str]) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in columns:
        justify: JustifyMethod = "left" if on_left(column) else "right"
        grid.add_column(Text(plain(column)), justify=justify, overflow="fold")
    return grid


def _width(console: Console, options: ConsoleOptions, grid: Grid) -> int:
    """Of the grid with nothing wrapped."""
    return Measurement.get(console, options.update(width=10_000), grid).maximum


def _warning(text: str) -> Text:
    return _text(f"! {text}", "bold yellow")


def _text(text: str, style: str = "") -> Text:
    return Text(plain(text), style)


def _title(title: str, common: str) -> Text:
    return Text.assemble("\n", (plain(title), "bold"), (f"  {plain(common)}", "dim"))


def _style(row: Row) -> str:
    if row.void or row.rank is None:
        return "dim"
    return "bold" if row.baseline else ""


def _footnotes(items: Sequence[Footnote]) -> Iterator[RenderableType]:
    for item in items:
        yield _indented(f"{item.letter} {item.rule}, {EFFECTS[item.effect]}. {item.seen}. Cure: {item.cure}.", "")


def _indented(text: str, style: str) -> Padding:
    return Padding(_text(text, style), (0, 0, 0, 2))
