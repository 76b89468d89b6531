"""What the shutdown probe found: who answers the request in flight and who drops it, by default and tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.records.lifecycle import EndingCase
from orchestrator.records.model import Record
from orchestrator.report.sheet import Sheet
from orchestrator.report.text import NONE, count, listed

TITLES = {
    "term": "a request in flight when the server is told to end",
    "int": "the same with SIGINT",
    "twice": "the same with a second signal 250 ms later",
    "group": "the same with the signal to the whole process group",
    "long": "a handler longer than the grace period",
    "stream": "a streamed answer in flight",
}
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
WIDTH = 60
SCALE_MS = (-250.0, 2_750.0)
Pair = tuple[Record, EndingCase]


def of_shutdown(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.probe == "shutdown"]


def sheets(records: Sequence[Record]) -> tuple[Sheet, ...]:
    """A table and timelines for each case and number of workers. None without such records."""
    groups: dict[tuple[str, int], list[Pair]] = {}
    for record in of_shutdown(records):
        for case in record.shutdown.cases if record.shutdown else ():
            groups.setdefault((case.case, record.cell.workers), []).append((record, case))
    made = [sheet for (case, workers), pairs in groups.items() for sheet in _both(case, workers, pairs)]
    return (*made, *missing("Shutdown", of_shutdown(records)))


def _both(case: str, workers: int, pairs: Sequence[Pair]) -> tuple[Sheet, Sheet]:
    pairs = sorted(pairs, key=lambda pair: (name_of(pair[0]), pair[0].cell.tuned))
    title = f"Shutdown: {TITLES[case]}, {count(workers, 'worker')}"
    table = Sheet(title, _common(pairs), COLUMNS, tuple(map(_row, pairs)), LEGEND, _conclusions(pairs))
    rows = tuple((name_of(record), flags(found), timeline(found)) for record, found in pairs)
    legend = (
        f"One column is {(SCALE_MS[1] - SCALE_MS[0]) / WIDTH:.0f} ms, from {SCALE_MS[0]:.0f} to {SCALE_MS[1]:.0f} ms. "
        "r request, S signal, A answered, C cut, R reset, O other end of the request, E exit of the server, > later.",
    )
    return table, Sheet(
        f"Timeline: {title[10:]}", "the first repetition of each", ("server", "flags", "timeline"), rows, legend
    )


def missing(what: str, records: Sequence[Record]) -> tuple[Sheet, ...]:
    """The cells without figures."""
    rows = tuple((name_of(r), r.outcome.replace("_", " "), r.reason.line) for r in records if r.reason)
    return (Sheet(f"{what}: not measured", "", ("server", "outcome", "reason"), rows),) if rows else ()


def name_of(record: Record) -> str:
    return f"{record.cell.server}/{record.cell.variant}"


def version_of(record: Record) -> str:
    """Of the distribution that owns the socket."""
    versions: Mapping[str, str] = record.image.versions if record.image else {}
    names = (str(record.declared.get("server", "")), record.cell.variant, record.cell.server)
    return next((versions[name] for name in names if name in versions), NONE)


def flags(found: EndingCase) -> str:
    """How the server was tuned; "default" where it was not."""
    signal = "" if found.signal == "SIGTERM" else f"stop with {found.signal}"
    return ", ".join(filter(None, (found.flags, signal))) or "default"


def fate(found: EndingCase) -> str:
    """kept, dropped (cut), ignored, or how often each came."""
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
    sorts: dict[str, list[str]] = {}
    for name, ways in by_name.items():
        what, text = _concluded(name, ways.get(False), ways.get(True))
        sorts.setdefault(what, []).append(text)
    return tuple(f"{what}: {listed(texts)}." for what, texts in sorts.items())


def _concluded(name: str, default: EndingCase | None, tuned: EndingCase | None) -> tuple[str, str]:
    if default and default.outcome == "answered":
        return "Kept by default", name
    if tuned and tuned.outcome == "answered":
        was = fate(default) if default else "not measured"
        return "Not kept by default, kept when tuned", f"{name} ({was}; kept with {flags(tuned)})"
    tried = f"; with {flags(tuned)}: {fate(tuned)}" if tuned else ""
    return "No flag found that keeps it", f"{name} ({fate(default) if default else 'default not measured'}{tried})"


def timeline(found: EndingCase) -> str:
    """The first repetition as one line: request, signal, end of the request, exit."""
    ending = found.repetitions[0]
    line = ["·"] * (WIDTH + 1)  # a blank would vanish in Markdown
    start, end = _column(ending.slow.sent_ms or SCALE_MS[0]), _column(ending.slow.at_ms)
    for at in range(start, end):
        line[at] = "-"
    line[start], line[_column(0)] = "r", "S"
    if ending.exit_ms is not None:
        line[_column(ending.exit_ms)] = "E" if ending.exit_ms <= SCALE_MS[1] else ">"
    line[end] = {"answered": "A", "cut": "C", "reset": "R"}.get(ending.slow.end, "O")
    return "".join(line)


def _column(ms: float) -> int:
    low, high = SCALE_MS
    return max(0, min(WIDTH, round((ms - low) / (high - low) * WIDTH)))
