"""A suite's axes -> cells, with the reason for each that is left out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from orchestrator.errors import Place, SpecError, nearest
from orchestrator.matrix.axes import AXIS, OWN, Setting
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.models import Axes, Filter, Matrix, Schedule, Suite, View, given
from orchestrator.matrix.probe_settings import SETTINGS
from orchestrator.matrix.resolved import catalogue
from orchestrator.matrix.suite_checks import matches

MAX_CELLS = 5000


@dataclass(frozen=True)
class LeftOut:
    """A cell, or a whole branch of the matrix, that is not measured, and why."""

    id: str
    why: str


@dataclass(frozen=True)
class Selection:
    """The cells of a suite in the order of the file, and what was left out.

    `baseline` names the variant that ratios refer to; "" where the probe gives none. With `against`, a cell's ratio
    refers to the one that has these values and agrees in all else. Cells are never compared across `apart`.
    """

    suite: str
    probe: str
    baseline: str
    cells: tuple[Cell, ...]
    left_out: tuple[LeftOut, ...]
    schedule: Schedule
    against: Mapping[str, object] = field(default_factory=dict)
    apart: tuple[str, ...] = ()
    view: View = field(default_factory=View)

    def comparison(self, cell: Cell) -> tuple[object, ...]:
        """Cells that agree in this are compared with each other."""
        return (*cell.comparison, *(getattr(cell, axis) for axis in self.apart))

    def references(self) -> dict[str, str]:
        """By cell id: the id of the cell that its ratio refers to. Cells that have none are left out.

        Where the baseline stands in several cells of a comparison (workers 1 and 2), the first one is it.
        """
        known = {cell.id for cell in self.cells}
        if self.against:
            found = {cell.id: cell.only(**self.against).id for cell in self.cells}
            return {own: other for own, other in found.items() if other in known}
        base = {self.comparison(cell): cell.id for cell in reversed(self.cells) if cell.variant.name == self.baseline}
        return {cell.id: base[key] for cell in self.cells if (key := self.comparison(cell)) in base}

    def side_by_side(self, cells: Sequence[Cell]) -> tuple[tuple[Cell, ...], ...]:
        """The cells in groups: what is compared, or runs on the same server, is in one group. Groups need not meet."""
        references = self.references()
        groups: list[tuple[set[object], list[Cell]]] = []
        for cell in cells:
            keys: set[object] = {self.comparison(cell), cell.launch_id, cell.id, references.get(cell.id, cell.id)}
            met = [group for group in groups if not keys.isdisjoint(group[0])]
            groups = [group for group in groups if keys.isdisjoint(group[0])]
            groups.append(
                (keys.union(*(known for known, _ in met)), [*itertools.chain(*(own for _, own in met)), cell])
            )
        at = {cell.id: number for number, cell in enumerate(cells)}
        found = [tuple(sorted(own, key=lambda cell: at[cell.id])) for _, own in groups]
        return tuple(sorted(found, key=lambda group: at[group[0].id]))

    def is_baseline(self, cell: Cell) -> bool:
        """Whether ratios may refer to a cell like this one."""
        if self.against:
            return all(getattr(cell, axis) == value for axis, value in self.against.items())
        return cell.variant.name == self.baseline


def expand(matrix: Matrix, suite_name: str, *, only: tuple[str, ...] = (), cpus: int = 1) -> Selection:
    """The cells of a suite. `only` keeps those whose id matches one of its patterns (`uvicorn*`, `*c32`).

    `cpus`: how many a server gets, which is what `workers: cpus` stands for.
    Raises SpecError where the suite is unknown, a cell stands in it twice, or nothing is left.
    """
    suite = _suite(matrix, suite_name)
    cells, left_out = _from_axes(matrix, suite.axes, cpus)
    for at, axes in enumerate(suite.include):
        more, missing = _from_axes(matrix, axes, cpus)
        _no_duplicates(f"suites.{suite_name}.include[{at}]", cells, more)
        cells, left_out = cells + more, left_out + missing
    cells, dropped = _with_closed_loops(*_excluded(cells, suite.exclude))
    if not cells:
        raise SpecError(
            f"suite {suite_name!r} has no cell left", next_step="`matrix list SUITE` says what was left out and why"
        )
    whole = Selection(
        suite=suite_name,
        probe=suite.probe,
        baseline=suite.baseline if SETTINGS[suite.probe].compares else "",
        cells=cells,
        left_out=left_out + dropped,
        schedule=suite.schedule,
        against=given(suite.against) if suite.against else {},
        apart=suite.apart,
        view=suite.view,
    )
    narrowed = _narrowed(whole, only) if only else whole
    if not narrowed.cells:
        names = [name for cell in cells for name in (cell.variant.name, cell.id)]
        raise SpecError(
            f"no cell of suite {suite_name!r} is called {' or '.join(only)}",
            nearest=nearest(only[0], dict.fromkeys(names)), next_step=f"`matrix list {suite_name}` shows their ids",
        )  # fmt: skip
    return narrowed


def one_flavour(selection: Selection) -> Selection:
    """The same for an engine without flavours: of the cells that differ in nothing else, the first."""
    first: dict[str, Cell] = {}
    for cell in selection.cells:
        first.setdefault(cell.only(flavour="").id, cell)
    why = "without Docker there are no flavours: only the host's own Python was covered"
    others = tuple(LeftOut(cell.id, why) for cell in selection.cells if cell not in first.values())
    return replace(selection, cells=tuple(first.values()), left_out=selection.left_out + others)


def _suite(matrix: Matrix, name: str) -> Suite:
    if name not in matrix.suites:
        raise SpecError(
            f"there is no suite {name!r}",
            nearest=nearest(name, matrix.suites),
            next_step=f"one of: {', '.join(matrix.suites)}",
        )
    return matrix.suites[name]


def _from_axes(matrix: Matrix, axes: Axes, cpus: int) -> tuple[tuple[Cell, ...], tuple[LeftOut, ...]]:
    cells: dict[str, Cell] = {}
    left_out: dict[str, LeftOut] = {}
    size = math.prod(len(values) for name, values in axes if name != "server")
    if size > MAX_CELLS:
        raise SpecError(f"the axes make {size} cells of each server, more than {MAX_CELLS}", next_step="narrow them")
    for variant in catalogue(matrix):
        if not any(matches(pattern, variant) for pattern in axes.server):
            continue
        setting = Setting(variant, {name: app.protocol for name, app in matrix.apps.items()}, cpus)
        if not AXIS["app"].settled(axes.app, setting):
            left_out[variant.name] = LeftOut(variant.name, f"no app of this suite speaks {variant.protocol}")
        for cell in _points(axes, setting):
            why = _unsupported(cell)
            if why:
                left_out.setdefault(f"{cell.launch_id}", LeftOut(cell.launch_id, why))
            else:
                cells.setdefault(cell.id, cell)
    return tuple(cells.values()), tuple(left_out.values())


def _points(axes: Axes, setting: Setting) -> Iterator[Cell]:
    values = (axis.settled(getattr(axes, axis.name), setting) for axis in OWN)
    return (Cell(setting.variant, *point) for point in itertools.product(*values))


def _unsupported(cell: Cell) -> str:
    """Why the variant cannot have a value of the cell; "" where it can have all."""
    refusals = (axis.refusal(cell.variant, getattr(cell, axis.name)) for axis in OWN)
    return next(filter(None, refusals), "")


def _no_duplicates(field: str, cells: tuple[Cell, ...], more: tuple[Cell, ...]) -> None:
    known = {cell.id for cell in cells}
    twice = next((cell.id for cell in more if cell.id in known), None)
    if twice:
        raise SpecError(
            f"the cell {twice} is in the suite already",
            place=Place(field=field),
            next_step="narrow the axes or this include",
        )


def _excluded(cells: tuple[Cell, ...], rules: tuple[Filter, ...]) -> tuple[tuple[Cell, ...], tuple[LeftOut, ...]]:
    kept, left_out = [], []
    for cell in cells:
        rule = next((rule for rule in rules if _dropped(cell, rule)), None)
        if rule is None:
            kept.append(cell)
        else:
            left_out.append(LeftOut(cell.id, f"excluded: {rule.why}"))
    return tuple(kept), tuple(left_out)


def _with_closed_loops(
    cells: tuple[Cell, ...], left_out: tuple[LeftOut, ...]
) -> tuple[tuple[Cell, ...], tuple[LeftOut, ...]]:
    """Without the open loops whose closed one was excluded: it would have said their rate."""
    known = {cell.id for cell in cells}
    kept = tuple(cell for cell in cells if cell.closed.id in known)
    why = "its rate refers to a closed loop that is excluded"
    return kept, left_out + tuple(LeftOut(cell.id, why) for cell in cells if cell.closed.id not in known)


def _dropped(cell: Cell, rule: Filter) -> bool:
    if rule.server is not None and not matches(rule.server, cell.variant):
        return False
    return all(getattr(cell, axis) == value for axis, value in given(rule).items() if axis != "server")


def _narrowed(whole: Selection, only: tuple[str, ...]) -> Selection:
    """The cells that `only` names, beside those that their ratios and their open loops' rates refer to."""
    references = whole.references()
    asked = {cell.id for cell in whole.cells if any(_named(cell, pattern) for pattern in only)}
    needed = asked | {references[own] for own in asked if own in references}
    needed |= {cell.closed.id for cell in whole.cells if cell.id in needed}
    kept = tuple(cell for cell in whole.cells if cell.id in needed) if asked else ()
    unasked = tuple(LeftOut(cell.id, "not asked for") for cell in whole.cells if cell.id not in needed)
    return replace(whole, cells=kept, left_out=whole.left_out + unasked)


def _named(cell: Cell, pattern: str) -> bool:
    return fnmatchcase(cell.id, pattern) or fnmatchcase(cell.id, f"{pattern}*")
