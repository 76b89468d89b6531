"""Every probe, in the order in which a report shows them: all that differs between probes is asked of its row here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from orchestrator.errors import SpecError, nearest
from orchestrator.matrix.probe_settings import SETTINGS, ProbeSettings
from orchestrator.probes.deploy.measure import deploy_seconds, probe_deploy
from orchestrator.probes.deploy.record import DeploySection
from orchestrator.probes.deploy.view import deploy_tables
from orchestrator.probes.install.measure import install_seconds, probe_install
from orchestrator.probes.install.record import InstallSection
from orchestrator.probes.install.view import INSTALL_CSV, install_tables
from orchestrator.probes.load.measure import load_seconds, measure_round
from orchestrator.probes.probe import CellByCell, CsvColumns, InRounds, Probe
from orchestrator.probes.shutdown.measure import probe_shutdown, shutdown_seconds
from orchestrator.probes.shutdown.record import ShutdownSection
from orchestrator.probes.shutdown.view import shutdown_tables, timelines
from orchestrator.probes.startup.measure import probe_startup, startup_seconds
from orchestrator.probes.startup.record import StartupSection
from orchestrator.probes.startup.view import startup_tables
from orchestrator.probes.views import Viewed
from orchestrator.stored import Stored

R = TypeVar("R", bound=Viewed)

_ROWS = (
    Probe("load", "load", InRounds(measure_round), load_seconds),
    Probe(
        "install", "installs", CellByCell(probe_install), install_seconds, InstallSection, install_tables,
        csv=CsvColumns(*INSTALL_CSV),
    ),
    Probe("startup", "startups", CellByCell(probe_startup), startup_seconds, StartupSection, startup_tables),
    Probe(
        "shutdown", "shutdowns", CellByCell(probe_shutdown), shutdown_seconds, ShutdownSection, shutdown_tables,
        timelines,
    ),
    Probe("deploy", "deploys", CellByCell(probe_deploy), deploy_seconds, DeploySection, deploy_tables),
)  # fmt: skip
PROBES: dict[str, Probe] = {probe.name: probe for probe in _ROWS}
"""By name. What a suite may say to each stands in orchestrator/matrix/probe_settings.py."""


def probe_named(name: str) -> Probe:
    """Raises SpecError where there is none of this name: a record of a later version may name one."""
    if name not in PROBES:
        raise SpecError(f"there is no probe {name!r}", nearest=nearest(name, PROBES), next_step="update this program")
    return PROBES[name]


def records_of(probe: Probe, records: Sequence[R]) -> list[R]:
    """Those that this probe made."""
    return [record for record in records if record.probe == probe.name]


def with_ratios(records: Sequence[R]) -> list[R]:
    """Those of probes that compare cells: the tables of comparisons are made of them."""
    return [record for record in records if probe_named(record.probe).settings.compares]


def section_of(record: Viewed) -> Stored | None:
    """What a probe found of one cell; None where it found nothing, and where rounds are stored."""
    section = getattr(record, record.probe, None)
    return section if isinstance(section, Stored) else None


@contextmanager
def added(probe: Probe, settings: ProbeSettings) -> Iterator[None]:
    """One more probe for a while: everything that is asked of probes is asked of it, too."""
    PROBES[probe.name], SETTINGS[probe.name] = probe, settings
    try:
        yield
    finally:
        del PROBES[probe.name], SETTINGS[probe.name]
