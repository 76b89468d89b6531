"""What the shutdown probe found: who answers the request in flight and who drops it, by default and tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from packaging.utils import canonicalize_name

from orchestrator.records.lifecycle import EndingCase
from orchestrator.records.model import Record
from orchestrator.report.sheet import Sheet
from orchestrator.report.text import NONE, count, listed
from orchestrator.report.timeline import LEGEND as SCALE
from orchestrator.report.timeline import Timeline, line

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
KEPT, TUNED, NEVER = "Kept by default", "Not kept by default, kept when tuned", "No flag found that keeps it"
DROPPED = ("cut", "reset", "refused", "protocol", "wrong_body", "status", "open")
COLUMNS = (
    "server", "version", "flags", "request in flight", "ms", "exit ms", "exit code", "idle connection",
    "kept connection", "new connection",
)  # fmt: skip
LEGEND = (
    "ms: median, from the signal to the end of the answer or of the connection; exit ms: to the end of the server. "
    "kept: answered whole; cut: closed before the answer was whole; reset: with a TCP reset; ignored: the server went "
    "on serving until it was killed.",
    "idle connection: kept open, nothing asked; kept connection: asks again 100 ms after the signal (closed: "
    "the client sees it in time; cut, reset: its request is lost); new connection: opened 100 ms after the signal.",
)
OVERVIEW = (
    "kept: answered whole, and the server ended by itself; dropped (cut): closed before the answer was whole; ignored: "
    "it went on serving until it was killed. Two words with → between them: by default, and tuned as the last column "
    "says; one word stands for both."
)
Pair = tuple[Record, EndingCase]


def of_shutdown(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.probe == "shutdown"]


def sheets(records: Sequence[Record]) -> tuple[Sheet, ...]:
    """An overview, then a table and timelines for each case and number of workers. None without such records."""
    made = [sheet for group, pairs in _groups(records).items() for sheet in _both(group, pairs)]
    return (*_overviews(of_shutdown(records)), *made, *missing("Shutdown", of_shutdown(records)))


def timelines(records: Sequence[Record]) -> tuple[Timeline, ...]:
    """The same as panels of a picture: the first repetition of each row."""
    return tuple(
        Timeline(f"Shutdown: {title}", tuple((_label(pair), pair[1].repetitions[0]) for pair in pairs))
        for title, pairs in _groups(records).items()
    )


def _label(pair: Pair) -> str:
    return f"{name_of(pair[0])}, tuned" if pair[0].cell.tuned else name_of(pair[0])


def _groups(records: Sequence[Record]) -> Mapping[str, list[Pair]]:
    """By title, a server's default before its tuned row."""
    groups: dict[str, list[Pair]] = {}
    for record in sorted(of_shutdown(records), key=lambda record: (name_of(record), record.cell.tuned)):
        for case in record.shutdown.cases if record.shutdown else ():
            title = f"{TITLES[case.case]}, {count(record.cell.workers, 'worker')}"
            groups.setdefault(title, []).append((record, case))
    return groups


def _overviews(records: Sequence[Record]) -> tuple[Sheet, ...]:
    """By number of workers: a row for each server, a column for each case, its fate by default and tuned."""
    workers = sorted({record.cell.workers for record in records if record.shutdown})
    return tuple(_overview([r for r in records if r.shutdown and r.cell.workers == number]) for number in workers)


def _overview(records: Sequence[Record]) -> Sheet:
    by_name: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: (name_of(record), record.cell.tuned)):
        by_name.setdefault(name_of(record), []).append(record)
    pairs = [(record, case) for record in records for case in (record.shutdown.cases if record.shutdown else ())]
    cases = [case for case in COLUMN_OF if any(found.case == case for _, found in pairs)]
    return Sheet(
        f"Shutdown: kept or dropped, {count(records[0].cell.workers, 'worker')}",
        _common(pairs) if len(cases) == 1 else _common(pairs).partition(", ")[2],
        ("server", "version", *(COLUMN_OF[case] for case in cases), "tuned with"),
        tuple(_overview_row(name, ways, cases) for name, ways in by_name.items()),
        (OVERVIEW,),
    )


def _overview_row(name: str, ways: Sequence[Record], cases: Sequence[str]) -> tuple[str, ...]:
    found = {
        (record.cell.tuned, case.case): case
        for record in ways
        for case in (record.shutdown.cases if record.shutdown else ())
    }
    tuned = [flags(case) for (tuned, _), case in found.items() if tuned]
    return name, version_of(ways[0]), *(_fates(found, case) for case in cases), tuned[0] if tuned else NONE


def _fates(found: Mapping[tuple[bool, str], EndingCase], case: str) -> str:
    """kept, or dropped (cut) → kept where tuning changes it."""
    ways = [fate(found[tuned, case]) for tuned in (False, True) if (tuned, case) in found]
    return " → ".join(dict.fromkeys(ways)) or NONE


def _both(title: str, pairs: Sequence[Pair]) -> tuple[Sheet, Sheet]:
    rows = tuple((name_of(record), flags(found), line(found.repetitions[0])) for record, found in pairs)
    legend = (*_conclusions(pairs), *LEGEND)
    timeline = "server", "flags", "timeline"
    return (
        Sheet(f"Shutdown: {title}", _common(pairs), COLUMNS, tuple(map(_row, pairs)), legend, detail=True),
        Sheet(f"Timeline: {title}", "the first repetition of each", timeline, rows, (SCALE,), detail=True),
    )


def missing(what: str, records: Sequence[Record]) -> tuple[Sheet, ...]:
    """The cells without figures."""
    rows = tuple((name_of(r), r.outcome.replace("_", " "), r.reason.line) for r in records if r.reason)
    return (Sheet(f"{what}: not measured", "", ("server", "outcome", "reason"), rows),) if rows else ()


def name_of(record: Record) -> str:
    return f"{record.cell.server}/{record.cell.variant}"


def version_of(record: Record) -> str:
    """Of the distribution that owns the socket; records that do not name it tell it by what they declare."""
    versions: Mapping[str, str] = record.image.versions if record.image else {}
    spelt = {str(canonicalize_name(name)): version for name, version in versions.items()}
    names = (record.package, str(record.declared.get("server", "")), record.cell.variant, record.cell.server)
    return next((spelt[name] for name in names if name in spelt), NONE)


def flags(found: EndingCase) -> str:
    """How the server was tuned; "default" where it was not."""
    signal = "" if found.signal == "SIGTERM" or found.case == "int" else f"STOPSIGNAL {found.signal}"
    return ", ".join(filter(None, (found.flags, signal))) or "default"


def keeps(found: EndingCase) -> bool:
    """Whether the request was answered and the server ended by itself, each time."""
    return found.outcome == "answered" and "killed" not in found.exit_codes


def fate(found: EndingCase) -> str:
    """kept, dropped (cut), ignored, or how often each came."""
    if found.outcome == "answered" and not keeps(found):
        return "kept, but it does not end"
    if found.outcome != "mixed":
        return _word(found.outcome)
    return "mixed: " + ", ".join(f"{number} {_word(end)}" for end, number in sorted(found.outcomes.items()))


def _word(end: str) -> str:
    if end == "answered":
        return "kept"
    return f"dropped ({end})" if end in DROPPED else end


def _row(pair: Pair) -> tuple[str, ...]:
    record, found = pair
    return (
        name_of(record), version_of(record), flags(found), fate(found), _ms(found.end_ms), _ms(found.exit_ms),
        _often(found.exit_codes), _often(found.idle), _often(found.kept), _often(found.new),
    )  # fmt: skip


def _ms(value: float | None) -> str:
    return NONE if value is None else f"{value:.0f}"


def _often(counts: Mapping[str, int]) -> str:
    """closed, or closed 7, cut 3."""
    if len(counts) == 1:
        return next(iter(counts)).replace("_", " ")
    return ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in sorted(counts.items()))


def _common(pairs: Sequence[Pair]) -> str:
    cases = [found for _, found in pairs]
    first = "the server is process 1 of its container" if all(found.pid1 for found in cases) else (
        "the server is a plain process, not process 1 of a container"
    )  # fmt: skip
    number = len(cases[0].repetitions)
    error = max(found.signal_error_us for found in cases)
    kill = next(record.shutdown.kill_after_s for record, _ in pairs if record.shutdown)
    return (
        f"{cases[0].request}, signal 250 ms after the request was sent, {count(number, 'fresh start')} each; {first}; "
        f"killed after {kill:.0f} s; the moment of the signal is known to ±{error:.0f} µs or better"
    )


def _conclusions(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Each server once: kept by default, kept when tuned, or dropped in every way that was tried."""
    by_name: dict[str, dict[bool, EndingCase]] = {}
    for record, found in pairs:
        by_name.setdefault(name_of(record), {})[record.cell.tuned] = found
    sorts: dict[str, list[str]] = {what: [] for what in (KEPT, TUNED, NEVER)}
    for name, ways in by_name.items():
        what, text = _concluded(name, ways.get(False), ways.get(True))
        sorts[what].append(text)
    return tuple(f"{what}: {listed(texts)}." for what, texts in sorts.items() if texts)


def _concluded(name: str, default: EndingCase | None, tuned: EndingCase | None) -> tuple[str, str]:
    if default and keeps(default):
        return KEPT, name
    if tuned and keeps(tuned):
        was = fate(default) if default else "not measured"
        return TUNED, f"{name} ({was}; kept with {flags(tuned)})"
    tried = f"; with {flags(tuned)}: {fate(tuned)}" if tuned else ""
    return NEVER, f"{name} ({fate(default) if default else 'default not measured'}{tried})"
