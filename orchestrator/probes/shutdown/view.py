"""Tables and timelines of shutdowns: who answers the request in flight and the one behind it, by default and tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from orchestrator.layout.text import NONE, count, listed
from orchestrator.layout.text_table import TextTable
from orchestrator.probes.shutdown.fates import (
    IN_FLIGHT,
    NOT_NEEDED,
    QUEUED,
    Watched,
    Ways,
    by_default_and_tuned,
    fate,
    flags,
    helped,
)
from orchestrator.probes.shutdown.record import Ending, EndingCase, ShutdownSection
from orchestrator.probes.shutdown.timeline import LEGEND as SCALE
from orchestrator.probes.shutdown.timeline import Timeline, line
from orchestrator.probes.views import Viewed, ViewedRun, missing, name_of, version_of

TITLES = {
    "term": "a request in flight when the server is told to end",
    "int": "the same with SIGINT",
    "twice": "the same with a second signal 250 ms later",
    "group": "the same with the signal to the whole process group",
    "long": "a handler longer than the grace period",
    "stream": "a streamed answer in flight",
}
COLUMN_OF = {
    "term": "request in flight",
    "int": "SIGINT",
    "twice": "second signal",
    "group": "signal to the group",
    "long": "longer than grace",
    "stream": "streamed answer",
}
KEPT = "The {} is not lost by default"
TUNED = "The {} is not kept by default, but kept when tuned"
NEVER = "No flag found that keeps the {}"
HELP = "what was found to help"
COLUMNS = (
    "server", "version", "flags", "request in flight", "ms", "exit ms", "exit code", "queued request",
    "idle connection", "kept connection", "new connection",
)  # fmt: skip
LEGEND = (
    "ms: median, from the signal to the end of the answer or of the connection; exit ms: to the end of the server. "
    "kept: answered whole; cut: closed before the answer was whole; reset: with a TCP reset; ignored: the server went "
    "on serving until it was killed.",
    "queued request: sent 100 ms before the signal, when every worker and thread had a slow one (at once: answered "
    "before the signal, for no place was lacking; —: not watched); idle connection: kept open, nothing asked; kept "
    "connection: asks again 100 ms after the signal (closed: the client sees it in time; cut, reset: its request is "
    "lost); new connection: opened 100 ms after the signal.",
)
OVERVIEW = (
    "request in flight: in its handler when the signal comes; queued request: sent 100 ms before it, when every worker "
    "and thread was busy. kept: answered whole, and the server ended by itself; at once: answered before the signal, "
    "for no place was lacking; dropped (cut): closed before the answer was whole; dropped (reset): with a TCP reset; "
    "dropped (status): another answer; dropped (open): neither answered nor closed until the server was killed; "
    "ignored: it went on serving until it was killed; —: not measured. Two words with → between them: by default, and "
    "with the flags or the signal that its entry in matrix.yaml has for shutdown; one word stands for both. The last "
    "column names them where they turned dropped into kept, and nothing that did not."
)
SHOWN = "the first repetition of each; where they differ, the first in which the request was not answered"


class ShutdownRecord(Viewed, Protocol):
    """A record with the section of this probe, or None where there are no figures."""

    @property
    def shutdown(self) -> ShutdownSection | None: ...


Pair = tuple[ShutdownRecord, EndingCase]


def shutdown_tables(_run: ViewedRun, records: Sequence[ShutdownRecord]) -> tuple[TextTable, ...]:
    """An overview, then a table and timelines for each case and number of workers. None without such records."""
    of_groups = [table for group, pairs in _groups(records).items() for table in _both(group, pairs)]
    return (*_overview(records), *of_groups, *missing("Shutdown", records))


def timelines(records: Sequence[ShutdownRecord]) -> tuple[Timeline, ...]:
    """The same as panels of a picture, one repetition of each row."""
    return tuple(
        Timeline(f"Shutdown: {title}", tuple((_label(pair), _shown(pair[1])) for pair in pairs))
        for title, pairs in _groups(records).items()
    )


def _shown(case: EndingCase) -> Ending:
    """The first repetition; where they differ, the first that lost the request: no row looks better than it is."""
    return next((one for one in case.repetitions if one.outcome != "answered"), case.repetitions[0])


def _label(pair: Pair) -> str:
    return f"{name_of(pair[0])}, tuned" if pair[0].cell.tuned else name_of(pair[0])


def _groups(records: Sequence[ShutdownRecord]) -> Mapping[str, list[Pair]]:
    """By title, a server's default before its tuned row."""
    groups: dict[str, list[Pair]] = {}
    for record in sorted(records, key=lambda record: (name_of(record), record.cell.tuned)):
        for case in record.shutdown.cases if record.shutdown else ():
            title = f"{TITLES[case.case]}, {count(record.cell.workers, 'worker')}"
            groups.setdefault(title, []).append((record, case))
    return groups


@dataclass(frozen=True)
class Column:
    """A request watched in one case, with so many workers."""

    case: str
    watched: Watched
    workers: int

    @property
    def title(self) -> str:
        return f"{self.watched.name}, {count(self.workers, 'worker')}"


WaysByCase = Mapping[tuple[str, int], Ways]
"""By case and number of workers."""


def _overview(records: Sequence[ShutdownRecord]) -> tuple[TextTable, ...]:
    """A row for each server, its fate with each number of workers, and what was found to help it."""
    pairs = [(record, case) for record in records for case in (record.shutdown.cases if record.shutdown else ())]
    if not pairs:
        return ()
    rows: dict[str, list[Pair]] = {}
    for record, case in sorted(pairs, key=lambda pair: name_of(pair[0])):
        rows.setdefault(name_of(record), []).append((record, case))
    columns = _columns(pairs)
    overview = TextTable(
        "Shutdown: kept or dropped",
        _common(pairs) if len({case.case for _, case in pairs}) == 1 else _common(pairs).partition(", ")[2],
        ("server", "version", *(column.title for column in columns), HELP),
        tuple(_overview_row(name, of, columns) for name, of in rows.items()),
        (OVERVIEW,),
    )
    return (overview,)


def _columns(pairs: Sequence[Pair]) -> list[Column]:
    """Of a single case, both of its requests; of several, the one in flight: their own tables have the other."""
    cases = [name for name in COLUMN_OF if any(case.case == name for _, case in pairs)]
    workers = sorted({record.cell.workers for record, _ in pairs})
    watched = [(case, replace(IN_FLIGHT, name=COLUMN_OF[case])) for case in cases]
    if len(cases) == 1 and any(case.queued for _, case in pairs):
        watched.append((cases[0], QUEUED))
    return [Column(case, of, number) for case, of in watched for number in workers]


def _overview_row(name: str, pairs: Sequence[Pair], columns: Sequence[Column]) -> tuple[str, ...]:
    ways: dict[tuple[str, int], Ways] = {}
    for record, case in pairs:
        at = case.case, record.cell.workers
        ways[at] = replace(ways.get(at, Ways()), **{"tuned" if record.cell.tuned else "default": case})
    fates = (
        by_default_and_tuned(ways.get((column.case, column.workers), Ways()), column.watched) for column in columns
    )
    return name, version_of(pairs[0][0]), *fates, _help(ways, columns)


def _help(ways: WaysByCase, columns: Sequence[Column]) -> str:
    """What helps all of the requests that are watched, or each in turn."""
    of = {(column.case, column.watched.name): column.watched for column in columns}
    cures: dict[str, list[str]] = {}
    for (case, name), watched in of.items():
        by_workers = {workers: own for (about, workers), own in ways.items() if about == case}
        if text := helped(by_workers, watched):
            cures.setdefault(text, []).append(name)
    if any(len(names) == len(of) for names in cures.values()):
        return next(iter(cures))
    return "; ".join(f"{listed(names)}: {text}" for text, names in cures.items()) or NOT_NEEDED


def _both(title: str, pairs: Sequence[Pair]) -> tuple[TextTable, TextTable]:
    rows = tuple((name_of(record), flags(case), line(_shown(case))) for record, case in pairs)
    legend = (*_conclusions(pairs), *LEGEND)
    timeline = "server", "flags", "timeline"
    return (
        TextTable(f"Shutdown: {title}", _common(pairs), COLUMNS, tuple(map(_row, pairs)), legend, detail=True),
        TextTable(f"Timeline: {title}", SHOWN, timeline, rows, (SCALE,), detail=True),
    )


def _row(pair: Pair) -> tuple[str, ...]:
    record, case = pair
    return (
        name_of(record), version_of(record), flags(case), fate(case), _ms(case.end_ms), _ms(case.exit_ms),
        _often(case.exit_codes), _often(case.queued or {NONE: 0}), _often(case.idle), _often(case.kept),
        _often(case.new),
    )  # fmt: skip


def _ms(value: float | None) -> str:
    return NONE if value is None else f"{value:.0f}"


def _often(counts: Mapping[str, int]) -> str:
    """closed, or closed 7, cut 3."""
    if len(counts) == 1:
        return next(iter(counts)).replace("_", " ")
    return ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in sorted(counts.items()))


def _common(pairs: Sequence[Pair]) -> str:
    cases = [case for _, case in pairs]
    first = "the server is process 1 of its container" if all(case.pid1 for case in cases) else (
        "the server is a plain process, not process 1 of a container"
    )  # fmt: skip
    number = len(cases[0].repetitions)
    error = max(case.signal_error_us for case in cases)
    kill = next(record.shutdown.kill_after_s for record, _ in pairs if record.shutdown)
    busy = any(case.places for case in cases)
    of = "workers × threads requests at a time, signal 250 ms after the first" if busy else "signal 250 ms after it"
    return (
        f"{cases[0].request}, {of} was sent, {count(number, 'fresh start')} each; "
        f"{first}; killed after {kill:.0f} s; the moment of the signal is known to ±{error:.0f} µs or better"
    )


def _conclusions(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Of each request: who keeps it by default, who when tuned, and who drops it in every way that was tried."""
    watched = [IN_FLIGHT, *([QUEUED] if any(case.queued for _, case in pairs) else [])]
    return tuple(line for one in watched for line in _concluded(pairs, one))


def _concluded(pairs: Sequence[Pair], watched: Watched) -> Sequence[str]:
    by_name: dict[str, Ways] = {}
    for record, case in pairs:
        way = {"tuned" if record.cell.tuned else "default": case}
        by_name[name_of(record)] = replace(by_name.get(name_of(record), Ways()), **way)
    sorts: dict[str, list[str]] = {what: [] for what in (KEPT, TUNED, NEVER)}
    for name, ways in by_name.items():
        what, text = _sorted(name, ways, watched)
        sorts[what].append(text)
    return [f"{what.format(watched.name)}: {listed(texts)}." for what, texts in sorts.items() if texts]


def _sorted(name: str, ways: Ways, watched: Watched) -> tuple[str, str]:
    was = watched.fate(ways.default) if ways.default else "default not measured"
    if ways.default and watched.kept(ways.default):
        return KEPT, name
    if ways.tuned and watched.kept(ways.tuned):
        return TUNED, f"{name} ({was}; kept with {flags(ways.tuned)})"
    tried = f"; with {flags(ways.tuned)}: {watched.fate(ways.tuned)}" if ways.tuned else ""
    return NEVER, f"{name} ({was}{tried})"
