"""The tables of the install probe: which server installs where, by which means, at what cost, and whether it serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from orchestrator.layout.text import NONE, scaled, three
from orchestrator.layout.text_table import TextTable
from orchestrator.probes.install.record import InstallSection
from orchestrator.probes.views import Viewed, ViewedRun

SYMBOLS = {"pure": "○", "wheel": "●", "compiled": "■", "failed": "✗"}
MEANINGS = {
    "○": "pure Python",
    "●": "wheels for this platform",
    "■": "compiled here",
    "!": "installs, but does not serve",
    "✗": "fails",
    "?": "no outcome: the image could not be made",
    NONE: "not asked for",
}
KINDS = {
    "no_wheel": ("w", "no wheel"),
    "no_compiler": ("c", "no compiler"),
    "missing_header": ("h", "missing header"),
    "missing_library": ("l", "missing library"),
    "build_error": ("b", "build error"),
    "wrong_python": ("p", "wrong Python"),
    "conflict": ("v", "conflict of versions"),
    "no_package_manager": ("m", "no package manager"),
    "no_system_package": ("s", "no such system package"),
    "timeout": ("t", "over the time limit"),
}
"""A letter and the words for each kind of docs/images.md."""

Where = tuple[str, str]
"""Flavour and install mode."""


class InstallRecord(Viewed, Protocol):
    """A record with the section of this probe, or None where there are no figures."""

    @property
    def install(self) -> InstallSection | None: ...


def install_tables(run: ViewedRun, records: Sequence[InstallRecord]) -> tuple[TextTable, ...]:
    """Servers × (flavour, mode) in symbols, and the cost of one install of each server. None without such records."""
    return (_outcomes(run, records), _costs(run, records)) if records else ()


def _outcomes(run: ViewedRun, records: Sequence[InstallRecord]) -> TextTable:
    places = list(dict.fromkeys(_where(record) for record in records))
    by_server = _by_server(records)
    rows = [
        (name, *(mark(by_place[place]) if place in by_place else NONE for place in places))
        for name, by_place in by_server.items()
    ]
    texts = {text for _, *marks in rows for text in marks}
    return TextTable(
        title="What installs where",
        common=_common(run, records),
        columns=("server", *(_titled(run, place) for place in places)),
        rows=(*rows, ("installs and serves", *(_score(by_server, place) for place in places))),
        legend=_legend(texts),
        reasons=_reasons(run, records),
    )


def mark(record: InstallRecord) -> str:
    """● or ✗c or ○! …: the outcome, the kind of a failure, and whether it serves."""
    section = record.install
    if section is None:
        return "?"
    if section.error:
        return SYMBOLS["failed"] + _kind(section.error.kind)[0]
    return SYMBOLS[section.outcome] + ("!" if section.serves is False else "")


def _kind(kind: str) -> tuple[str, str]:
    return KINDS.get(kind, ("", kind.replace("_", " ")))


def _where(record: InstallRecord) -> Where:
    return record.cell.flavour, record.cell.mode


def _by_server(records: Sequence[InstallRecord]) -> Mapping[str, Mapping[Where, InstallRecord]]:
    servers: dict[str, dict[Where, InstallRecord]] = {}
    for record in records:
        servers.setdefault(_name(record), {}).setdefault(_where(record), record)
    return servers


def _name(record: InstallRecord) -> str:
    return f"{record.cell.server}/{record.cell.variant}"


def _titled(run: ViewedRun, place: Where) -> str:
    """slim wheel; without Docker there is but the host's own Python."""
    flavour, mode = place
    return mode if run.engine.get("name") == "local" else f"{flavour} {mode}"


def _score(by_server: Mapping[str, Mapping[Where, InstallRecord]], place: Where) -> str:
    tried = [by_place[place].install for by_place in by_server.values() if place in by_place]
    return f"{sum(bool(section and section.serves) for section in tried)} of {len(tried)}"


def _common(run: ViewedRun, records: Sequence[InstallRecord]) -> str:
    environments = (", ".join(filter(None, (f"Python {s.python}", s.libc, s.arch))) for s in _sections(records))
    pythons = "; ".join(dict.fromkeys(environments))
    if run.engine.get("name") == "local":
        return f"the host's own Python alone, flavours were not covered: {pythons}"
    return pythons


def _sections(records: Sequence[InstallRecord]) -> list[InstallSection]:
    return [record.install for record in records if record.install]


def _legend(texts: set[str]) -> tuple[str, ...]:
    used = [f"{sign} {words}" for sign, words in MEANINGS.items() if any(sign in text for text in texts)]
    kinds = [f"✗{letter} {words}" for letter, words in KINDS.values() if f"✗{letter}" in texts]
    return ("; ".join((*used, *kinds)) + ".",)


def _reasons(run: ViewedRun, records: Sequence[InstallRecord]) -> tuple[str, ...]:
    """One line for each server and reason, with every place where it holds."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for record in records:
        if why := _why(record):
            places.setdefault((_name(record), mark(record), why), []).append(_titled(run, _where(record)))
    return tuple(f"{name} {sign} ({', '.join(where)}): {why}" for (name, sign, why), where in places.items())


def _why(record: InstallRecord) -> str:
    section = record.install
    if section is None:
        return record.reason.line if record.reason else "no reason is known"
    return section.error.line if section.error else section.why_not


_COSTS = (
    "server", "where", "outcome", "download s", "build s", "install s", "MB fetched", "MB added", "files",
    "system packages",
)  # fmt: skip


def _costs(run: ViewedRun, records: Sequence[InstallRecord]) -> TextTable:
    """The first install of each server that worked, and the first that compiled."""
    rows: dict[tuple[str, bool], tuple[str, ...]] = {}
    for record in records:
        section = record.install
        if section and not section.error:
            key = _name(record), section.outcome == "compiled"
            rows.setdefault(key, (_name(record), _titled(run, _where(record)), *_cost(section)))
    return TextTable(
        title="What an install costs",
        common="the first one of each server that worked, and the first that compiled",
        columns=_COSTS,
        rows=tuple(rows.values()),
        legend=(
            "Seconds of wall clock, builds side by side; preparing the metadata of a source is part of the download. "
            "MB: 1,000,000 bytes, of the files that the server brought beyond the frameworks.",
        ),
        detail=True,
    )


def _cost(section: InstallSection) -> tuple[str, ...]:
    seconds = [three(section.seconds.get(step, 0.0)) for step in ("download", "build", "install")]
    sizes = [scaled(size, 1e6) for size in (section.bytes_downloaded, section.size_added)]
    return (section.outcome, *seconds, *sizes, str(len(section.packages)), " ".join(section.system) or NONE)


def _csv_values(section: InstallSection) -> dict[str, str | int | float | bool | None]:
    """By column; the raw figures of one install."""
    error, files = section.error, section.packages
    return {
        **section.model_dump(include={"bytes_downloaded", "size_added", "libc", "arch", "pip", "serves", "why_not"}),
        **{f"{step}_s": seconds for step, seconds in section.seconds.items()},
        "install": section.outcome,
        "error_kind": error.kind if error else None,
        "error_line": error.line if error else None,
        "files": " ".join(file.file for file in files),
        "tags": " ".join(file.tag or NONE for file in files),
        "system_packages": " ".join(section.system),
        "python_version": section.python,
        "ready_s": section.ready_s,
    }


INSTALL_CSV = (
    (
        "install", "error_kind", "error_line", "serves", "ready_s", "why_not",
        "files", "tags", "system_packages", "system_s", "download_s", "build_s", "install_s", "bytes_downloaded",
        "size_added", "python_version", "libc", "arch", "pip",
    ),
    _csv_values,
)  # fmt: skip
"""The columns of a CSV that this probe fills, and their values."""
