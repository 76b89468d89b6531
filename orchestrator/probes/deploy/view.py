"""The tables of the deploy probe: requests lost, latency added and seconds until normal, for each disturbance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from orchestrator.layout.text import NONE, count, three
from orchestrator.layout.text_table import TextTable
from orchestrator.probes.deploy.record import DeployCase, DeploySection
from orchestrator.probes.views import Viewed, ViewedRun, missing, name_of, version_of

TITLES = {
    "rolling": "replaced: traffic moves to a second instance, 100 ms later the first is told to end",
    "late": "replaced, but traffic moves 500 ms after the first is told to end",
    "reload": "told to reload",
    "kill": "a worker is killed with SIGKILL",
    "stall": "a request takes longer than a worker may",
}
COLUMNS = ("server", "version", "lost", "of", "by kind", "ms added", "normal after s")
LEGEND = (
    "lost: without a right answer, of all that were due, in all repetitions together; nothing is sent twice. ms added: "
    "greatest median latency of 100 ms after the event, less the median before; normal: after the last loss, and "
    "the last 100 ms with a median above all latencies before. Both are the worst repetition.",
)


class DeployRecord(Viewed, Protocol):
    """A record with the section of this probe, or None where there are no figures."""

    @property
    def deploy(self) -> DeploySection | None: ...


def deploy_tables(_run: ViewedRun, records: Sequence[DeployRecord]) -> tuple[TextTable, ...]:
    """A table for each disturbance. None without such records."""
    groups: dict[str, list[tuple[DeployRecord, DeployCase]]] = {}
    for record in records:
        for case in record.deploy.cases if record.deploy else ():
            groups.setdefault(case.case, []).append((record, case))
    of_cases = [_table(name, pairs) for name, pairs in groups.items()]
    return (*of_cases[:-1], *(replace(table, legend=LEGEND) for table in of_cases[-1:]), *missing("Deploy", records))


def _table(name: str, pairs: Sequence[tuple[DeployRecord, DeployCase]]) -> TextTable:
    able = [(record, case) for record, case in pairs if not case.unable]
    reasons = tuple(f"{name_of(record)}: {case.unable}" for record, case in pairs if case.unable)
    repetitions = max((len(case.repetitions) for _, case in able), default=0)
    rate = next(record.deploy.rate for record, _ in pairs if record.deploy)
    common = f"{rate:.0f} requests a second, {count(repetitions, 'repetition')} each"
    return TextTable(f"Deploy: {TITLES[name]}", common, COLUMNS, tuple(_row(*pair) for pair in able), reasons=reasons)


def _row(record: DeployRecord, case: DeployCase) -> tuple[str, ...]:
    lost: Counter[str] = Counter()
    for repetition in case.repetitions:
        lost.update(repetition.lost)
    kinds = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in lost.most_common()) or NONE
    normal = [repetition.normal_after_s for repetition in case.repetitions]
    workers = count(record.cell.workers, "worker")
    return (
        f"{name_of(record)}, {workers}", version_of(record), str(lost.total()),
        str(sum(repetition.requests for repetition in case.repetitions)), kinds,
        three(max(repetition.added_ms for repetition in case.repetitions)),
        "not by the end" if None in normal else three(max(value for value in normal if value is not None)),
    )  # fmt: skip
