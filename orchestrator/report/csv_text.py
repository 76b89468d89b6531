"""CSV after RFC 4180: one line per cell, failures included, every figure raw. Void figures are named void."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from orchestrator.evidence.model import Record, RunFile, Summary
from orchestrator.figures import EXPORTED
from orchestrator.matrix.axes import AXIS
from orchestrator.probes.probe import CsvValue as Value
from orchestrator.probes.registry import probe_named, section_of
from orchestrator.report.attempt import Attempts
from orchestrator.report.conditions import banner
from orchestrator.report.standings import effects
from orchestrator.report.table import Row, tables

_FORMULA = ("=", "+", "-", "@")


def render(run: RunFile, records: Sequence[Record]) -> str:
    """Lines end in CR LF. An empty value is a figure that could not be taken. `warning` is filled in a dry run."""
    rows = {row.id: row for table in tables(run, records, Attempts()) for row in table.rows}
    lines = [_values(run, record, rows.get(record.id)) for record in records]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    columns = _columns(records)
    writer.writerow(columns)
    writer.writerows([safe(line.get(name)) for name in columns] for line in lines)
    return buffer.getvalue()


def safe(value: Value) -> str | int | float:
    """Text that a spreadsheet would take for a formula gets an apostrophe before it; None becomes ""."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = value.replace("\0", "")
        return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
    return value


def _columns(records: Sequence[Record]) -> Sequence[str]:
    """Those of load, or what all probes share with the own columns of the run's probe."""
    own = next((csv for record in records if (csv := probe_named(record.probe).csv)), None)
    return (*_SHARED, *own.names, *_IMAGE) if own else COLUMNS


def _of_probe(record: Record) -> Mapping[str, Value]:
    own, section = probe_named(record.probe).csv, section_of(record)
    return own.values(section) if own and section else {}


def _values(run: RunFile, record: Record, row: Row | None) -> dict[str, Value]:
    image, reason = record.image, record.reason
    return {
        "warning": banner(run),
        "id": record.id,
        "run": run.id,
        "suite": record.suite,
        "engine": str(run.engine.get("name")),
        **record.cell.model_dump(),
        "baseline": record.baseline,
        "reference": record.reference,
        "outcome": record.outcome,
        "stage": reason.stage if reason else None,
        "reason": reason.line if reason else None,
        "verdicts": " ".join(dict.fromkeys(verdict.rule for verdict in record.verdicts)),
        "effects": " ".join(sorted(effects(record))),
        "rank": row.rank if row else None,
        "rank_last": row.rank_last if row else None,
        **(_figures(record.summary) if record.summary else {}),
        **_of_probe(record),
        "base": image.base if image else None,
        "standin": image.standin if image else None,
        "digest": image.digest if image else None,
    }


def _figures(summary: Summary) -> dict[str, Value]:
    exported = [figure.exported(getattr(summary, figure.name)) for figure in EXPORTED]
    return {column: value for columns in exported for column, value in columns.items()}


COLUMNS = (
    "warning", "id", "run", "suite", "engine", *AXIS, "baseline", "reference", "outcome", "stage", "reason", "verdicts",
    "effects", "rank", "rank_last", *(column for figure in EXPORTED for column in figure.columns), "base", "standin",
    "digest",
)  # fmt: skip
_SHARED = COLUMNS[: COLUMNS.index("verdicts")]
_IMAGE = "base", "standin", "digest"
