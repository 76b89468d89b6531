"""What the rest of the program asks of a probe; `registry` has a row of this kind for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from orchestrator.engines.protocol import Engine
from orchestrator.images.plan import BuiltImage
from orchestrator.layout.text_table import TextTable
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.expand import Selection
from orchestrator.matrix.probe_settings import SETTINGS, ProbeSettings
from orchestrator.probes.events import Emit
from orchestrator.probes.launching import Plan
from orchestrator.probes.results import Failure, Round, Section
from orchestrator.probes.views import ViewedRun
from orchestrator.stored import Stored

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CsvValue = str | int | float | bool | None


@dataclass(frozen=True)
class InRounds:
    """Measured over all cells together, in rounds: `measure_round` gives the round of each cell by the cell's id."""

    measure_round: Callable[[Engine, Plan, int, Emit], Mapping[str, Round]]


@dataclass(frozen=True)
class CellByCell:
    """Measured one cell after the other: `measure` gives the fields of the probe's section, or why there are none."""

    measure: Callable[[Engine, Plan, Cell, BuiltImage | Failure], Section | Failure]


class Panel(Protocol):
    """A part of a picture. `rows`: what stands in it, one below the other."""

    @property
    def rows(self) -> Sequence[object]: ...

    def draw(self, axes: Axes) -> None: ...


@dataclass(frozen=True)
class CsvColumns:
    """The probe's own columns of a CSV, in the place of those of load: their names, and their values for a section."""

    names: tuple[str, ...]
    values: Callable[[Any], Mapping[str, CsvValue]]


def _no_tables(_run: ViewedRun, _records: Sequence[Any]) -> tuple[TextTable, ...]:
    return ()


@dataclass(frozen=True)
class Probe:
    """One probe.

    `noun`: what it makes one of for each cell, as in "the table of installs". `section`: the type of its part of a
    record, which is the record's field with the name of the probe; None where rounds are stored. `seconds`: an estimate
    of how long measuring a selection takes, building the images aside. `tables` and `panels`: its views of the records
    of this probe; none where the comparisons of a report show them. `csv`: None for the columns of load.
    """

    name: str
    noun: str
    how: InRounds | CellByCell
    seconds: Callable[[Selection], float]
    section: type[Stored] | None = None
    tables: Callable[[ViewedRun, Sequence[Any]], tuple[TextTable, ...]] = _no_tables
    panels: Callable[[Sequence[Any]], tuple[Panel, ...]] | None = None
    csv: CsvColumns | None = None

    @property
    def settings(self) -> ProbeSettings:
        """What a suite may say where its probe is this one."""
        return SETTINGS[self.name]
