"""A run as its tables read it: which records are compared with each other, what their ratios refer to, and the view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from orchestrator.evidence.model import Record, RunFile
from orchestrator.figures import Estimate
from orchestrator.matrix.axes import COMPARED
from orchestrator.matrix.models import View
from orchestrator.probes.registry import with_ratios
from orchestrator.report.axes import WORDS

SELF = Estimate(value=1.0, low=1.0, high=1.0)
"""The ratio of a cell to itself."""


@dataclass(frozen=True)
class ComparedRun:
    """A run whose cells are compared. `records`: those with ratios, each with its reference, in the run's order."""

    run: RunFile
    view: View
    records: tuple[Record, ...]

    @cached_property
    def by_id(self) -> Mapping[str, Record]:
        return {record.id: record for record in self.records}

    def base(self, record: Record) -> Record | None:
        """The record that the ratios of a record refer to."""
        return self.by_id.get(record.reference)

    @property
    def axes(self) -> tuple[str, ...]:
        """Records that agree in these are compared with each other."""
        return compared_axes(self.run)

    def groups(self, records: Sequence[Record], *without: str) -> list[list[Record]]:
        """Records that agree in the axes of a comparison, but for those of `without`; in the order of the run."""
        found: dict[tuple[object, ...], list[Record]] = {}
        axes = [axis for axis in self.axes if axis not in without]
        for record in records:
            found.setdefault(tuple(getattr(record.cell, axis) for axis in axes), []).append(record)
        return list(found.values())

    def title(self, record: Record, *without: str) -> str:
        """The title of a record's comparison, as in "item, TLS, 32 connections"."""
        axes = sorted({*self.axes} - {*without}, key=("workload", *WORDS).index)
        return ", ".join(filter(None, (WORDS[axis].title(getattr(record.cell, axis)) for axis in axes)))

    @property
    def sign(self) -> str:
        """What stands after "×": baseline, or the values of the same server that ratios refer to."""
        told = (WORDS[axis].against(value) for axis, value in self.run.against.items())
        return " ".join(told) or "baseline"

    @property
    def own(self) -> str:
        """The ratio of a row that ratios refer to."""
        return "1×" if self.run.against else "baseline"

    @property
    def spans(self) -> bool:
        """Whether a row of the view holds both sides of its ratios."""
        return self.view.across in self.run.against


def compared_run(run: RunFile, records: Sequence[Record]) -> ComparedRun:
    """The run as its tables read it: across connections where it is of before views.

    Where its records do not name their references yet, those are found by the baseline.
    """
    own = with_ratios(records)
    known = any(record.reference for record in own)
    return ComparedRun(run, View.model_validate(run.view), tuple(own if known else _referred(run, own)))


def compared_axes(run: RunFile) -> tuple[str, ...]:
    return (*COMPARED, *(axis for axis in run.apart if axis not in COMPARED))


def _referred(run: RunFile, records: Sequence[Record]) -> list[Record]:
    """The baseline's cell whose ratio is 1 exactly is what the others of its comparison refer to."""
    bases: dict[tuple[object, ...], str] = {}
    keys = [tuple(getattr(record.cell, axis) for axis in compared_axes(run)) for record in records]
    for key, record in zip(keys, records, strict=True):
        if record.baseline and record.summary and record.summary.ratio == SELF:
            bases.setdefault(key, record.id)
    found = zip(keys, records, strict=True)
    return [record.model_copy(update={"reference": bases.get(key, "")}) for key, record in found]
