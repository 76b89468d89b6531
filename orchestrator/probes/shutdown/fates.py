"""What became of a request when its server was told to end, in words, and what was found to keep it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.layout.text import NONE, count, listed
from orchestrator.probes.shutdown.record import EndingCase

DROPPED = ("cut", "reset", "refused", "protocol", "wrong_body", "status", "open")
SERVED = frozenset(("answered", "at_once"))
NOT_NEEDED, NO_FLAG, NOT_TRIED = "not needed", "no flag found", "no flag was tried"
STAYS = ", but it does not end"


@dataclass(frozen=True)
class Watched:
    """A request that the shutdown probe watches: its fate in words, and whether it was served and the server ended."""

    name: str
    fate: Callable[[EndingCase], str]
    kept: Callable[[EndingCase], bool]


@dataclass(frozen=True)
class Ways:
    """One case of a server with a number of workers: at its defaults, and tuned. None: not measured so."""

    default: EndingCase | None = None
    tuned: EndingCase | None = None


def keeps(case: EndingCase) -> bool:
    """Whether the request in flight was answered and the server ended by itself, each time."""
    return case.outcome == "answered" and "killed" not in case.exit_codes


def fate(case: EndingCase) -> str:
    """kept, dropped (cut), ignored, or how often each came."""
    if case.outcome == "answered" and not keeps(case):
        return f"kept{STAYS}"
    return _often(case.outcomes) if case.outcome == "mixed" else _word(case.outcome)


def keeps_queued(case: EndingCase) -> bool:
    """Whether the request that waited was answered and the server ended by itself, each time; or none had to wait."""
    ends = set(case.queued or {"at_once"})
    return ends == {"at_once"} or (ends <= SERVED and case.outcome != "ignored" and "killed" not in case.exit_codes)


def queued_fate(case: EndingCase) -> str:
    """The same words as of the request in flight; `at once` where it never had to wait, — where none was watched."""
    if not case.queued:
        return NONE
    if set(case.queued) == {"at_once"}:
        return _word("at_once")
    if case.outcome == "ignored":
        return "ignored"
    if set(case.queued) <= SERVED:
        return f"kept{'' if keeps_queued(case) else STAYS}"
    return _often(case.queued)


IN_FLIGHT = Watched("request in flight", fate, keeps)
QUEUED = Watched("queued request", queued_fate, keeps_queued)


def flags(case: EndingCase) -> str:
    """How the server was tuned; "default" where it was not."""
    signal = "" if case.signal == "SIGTERM" or case.case == "int" else f"STOPSIGNAL {case.signal}"
    return ", ".join(filter(None, (case.flags, signal))) or "default"


def by_default_and_tuned(ways: Ways, watched: Watched) -> str:
    """kept, or dropped (cut) → kept where tuning changes it."""
    fates = [watched.fate(case) for case in (ways.default, ways.tuned) if case]
    return " → ".join(dict.fromkeys(fates)) or NONE


def helped(by_workers: Mapping[int, Ways], watched: Watched) -> str:
    """What turned a request that is lost by default into a kept one; "" where none is lost.

    Never names a flag that did not help, and says with how many workers nothing is lost where that is so for some.
    """
    cures: dict[str, list[int]] = {}
    kept: list[int] = []
    for workers, ways in sorted(by_workers.items()):
        if ways.default and watched.kept(ways.default):
            kept.append(workers)
        elif ways.default:
            cures.setdefault(_cure(ways.tuned, watched), []).append(workers)
    if len(cures) < 2 and not (cures and kept):
        return next(iter(cures), "")
    texts = [f"{cure} with {_workers(numbers)}" for cure, numbers in cures.items()]
    return ", ".join([*texts, *([f"kept with {_workers(kept)}"] if kept else [])])


def _cure(tuned: EndingCase | None, watched: Watched) -> str:
    if tuned is None:
        return NOT_TRIED
    return flags(tuned) if watched.kept(tuned) else NO_FLAG


def _workers(numbers: list[int]) -> str:
    """1 worker; 1 and 2 workers."""
    return count(numbers[0], "worker") if len(numbers) == 1 else f"{listed([*map(str, numbers)])} workers"


def _often(counts: Mapping[str, int]) -> str:
    if len(counts) == 1:
        return _word(next(iter(counts)))
    return "mixed: " + ", ".join(f"{number} {_word(end)}" for end, number in sorted(counts.items()))


def _word(end: str) -> str:
    if end == "answered":
        return "kept"
    return f"dropped ({end})" if end in DROPPED else end.replace("_", " ")
