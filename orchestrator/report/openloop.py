"""Open loops: how much came in, how much of it was answered, and what their latencies say."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.evidence.model import Record, Summary
from orchestrator.report.axes import WORDS
from orchestrator.report.measures import bare
from orchestrator.report.references import line
from orchestrator.report.standings import Standing

OPEN_NOTE = (
    "closed: as many requests as it answers; 50 %: half of those come in at random times, answered or not. Latencies "
    "of an open loop count from those times, so that a stall is charged to every request that it delayed."
)


def overloaded(record: Record) -> bool:
    """Whether more came in than it answered, so that the queue grew as long as it was measured."""
    return any(verdict.rule == "overloaded" for verdict in record.verdicts)


def open_lines(standings: Sequence[Standing]) -> tuple[str, ...]:
    """Where more came in than was answered, and which rows may not be compared. None without open loops."""
    found = [(e, e.record.summary) for e in standings if e.record.cell.open and e.record.summary and not e.void]
    if not found:
        return ()
    known = any(summary.latency_intervals_us for _, summary in found)
    late = [_told(standing, summary) for standing, summary in found if overloaded(standing.record)]
    return (
        line("Overloaded: the queue grew, and latencies only tell how long it was let to", *late)
        or "Every server kept up with what came in.",
        "What came in is a share of each server's own throughput: latencies compare servers that are equally busy, not "
        f"equally many requests.{'' if known else ' They have no intervals, so no order is resolved.'}",
    )


def _told(standing: Standing, summary: Summary) -> str:
    place, share = WORDS["open"].heading(standing.record.cell.open), bare("in-time", standing, summary)
    return f"{standing.name} at {place} ({share} of {bare('asked', standing, summary)} requests/s answered in time)"
