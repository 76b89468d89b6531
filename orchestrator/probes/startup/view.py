"""The table of the startup probe: how soon a server serves, and what it costs before anybody asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orchestrator.layout.text import NONE, count, three
from orchestrator.layout.text_table import TextTable
from orchestrator.probes.startup.record import Spread, StartupSection
from orchestrator.probes.views import Viewed, ViewedRun, missing, name_of, version_of

COLUMNS = (
    "server", "version", "answers ms", "accepts ms", "first answer ms", "tenth answer ms", "CPU ms", "RSS MB", "PSS MB",
    "processes",
)  # fmt: skip
LEGEND = (
    "Median and range of fresh starts. answers, accepts: from the exec of the server to the first right answer and to "
    "the first connection made; first and tenth answer: latency of each; CPU: of the processes that live, ten answers "
    "included; RSS, PSS: of all processes, idle. MB: 1,000,000 bytes.",
)


class StartupRecord(Viewed, Protocol):
    """A record with the section of this probe, or None where there are no figures."""

    @property
    def startup(self) -> StartupSection | None: ...


def startup_tables(_run: ViewedRun, records: Sequence[StartupRecord]) -> tuple[TextTable, ...]:
    """One row a server, the soonest first. None without such records."""
    started = [(record, record.startup) for record in records if record.startup]
    started.sort(key=lambda pair: pair[1].answered_ms.median)
    table = TextTable("Startup", _common(started), COLUMNS, tuple(_row(*pair) for pair in started), LEGEND)
    return (*((table,) if started else ()), *missing("Startup", records))


def _common(started: Sequence[tuple[StartupRecord, StartupSection]]) -> str:
    starts = max((len(section.starts) for _, section in started), default=0)
    return f"{count(starts, 'fresh start')} each, 1 worker unless it says otherwise"


def _row(record: StartupRecord, section: StartupSection) -> tuple[str, ...]:
    return (
        name_of(record), version_of(record), _range(section.answered_ms), _range(section.accepted_ms),
        _range(section.first_us, 1e3), _range(section.tenth_us, 1e3), _range(section.cpu_ms),
        _range(section.rss_bytes, 1e6), _range(section.pss_bytes, 1e6), three(section.processes.median),
    )  # fmt: skip


def _range(spread: Spread | None, unit: float = 1.0) -> str:
    """290 (281–312)"""
    if spread is None:
        return NONE
    low, median, high = (three(value / unit) for value in (spread.low, spread.median, spread.high))
    return f"{median} ({low}–{high})"
