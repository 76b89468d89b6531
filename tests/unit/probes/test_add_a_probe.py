"""A probe is added by its row in the registry alone: from matrix.yaml to records, reports and the listing."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from rich.console import Console

from orchestrator.cli.closing import usable, why_unusable
from orchestrator.cli.listing import listing_json, show_listing
from orchestrator.engines.memory import Behaviour, MemoryEngine
from orchestrator.engines.protocol import Engine
from orchestrator.errors import SpecError
from orchestrator.evidence.model import Record, RunFile
from orchestrator.images.plan import BuiltImage
from orchestrator.layout.text_table import TextTable
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.expand import Selection, expand
from orchestrator.matrix.loading import MatrixFile, json_schema, parse_matrix
from orchestrator.matrix.probe_settings import SETTINGS, ProbeSettings
from orchestrator.pipeline import Order, run
from orchestrator.probes.launching import Plan, start_server
from orchestrator.probes.probe import CellByCell, CsvColumns, Probe
from orchestrator.probes.registry import PROBES, added
from orchestrator.probes.results import Failure, Section
from orchestrator.probes.views import Viewed, ViewedRun, missing, name_of
from orchestrator.report import csv_text, json_text, markdown
from orchestrator.stored import Stored

SMALL = Path(__file__).parents[2] / "cases" / "small.matrix.yaml"


class GreetingSection(Stored):
    """Of the greeting probe: how often a server answered its checks, and how long the last took."""

    greetings: int
    ready_s: list[float]


class GreetingRecord(Viewed, Protocol):
    @property
    def greeting(self) -> GreetingSection | None: ...


def measure(engine: Engine, plan: Plan, cell: Cell, image: BuiltImage | Failure) -> Section | Failure:
    if isinstance(image, Failure):
        return image
    ready: list[float] = []
    for _ in range(plan.schedule.rounds):
        started = start_server(engine, plan, cell)
        if isinstance(started, Failure):
            return started
        started.running.stop()
        ready.append(started.check.ready_s)
    return {"greetings": len(ready), "ready_s": ready}


def tables(_run: ViewedRun, records: Sequence[GreetingRecord]) -> tuple[TextTable, ...]:
    rows = tuple((name_of(r), str(r.greeting.greetings)) for r in records if r.greeting)
    return (TextTable("Greetings", "", ("server", "greetings"), rows), *missing("Greetings", records))


def values(section: GreetingSection) -> Mapping[str, int]:
    return {"greetings": section.greetings}


GREETING = Probe(
    "greeting",
    "greetings",
    CellByCell(measure),
    lambda selection: 60.0 * len(selection.cells),
    GreetingSection,
    tables,
    csv=CsvColumns(("greetings",), values),
)


@pytest.fixture(autouse=True)
def greeting() -> Iterator[None]:
    with added(GREETING, ProbeSettings()):
        yield


def matrix_file(more: str = "") -> MatrixFile:
    suite = f"\n  hello: {{probe: greeting, axes: {{server: all, connections: 1{more}}}, schedule: {{rounds: 3}}}}\n"
    return parse_matrix(SMALL.read_text(encoding="utf-8").rstrip() + suite)


def selected() -> Selection:
    return expand(matrix_file().matrix, "hello")


def measured(folder: Path, behaviours: Mapping[str, Behaviour] | None = None) -> tuple[RunFile, list[Record]]:
    return run(Order(matrix_file().matrix, selected(), folder / "run"), MemoryEngine(behaviours), lambda _: None)


def test_its_section_stands_in_the_record(tmp_path: Path) -> None:
    _, records = measured(tmp_path)
    stored: dict[str, Any] = json.loads(records[0].model_dump_json())
    assert stored["probe"] == "greeting"
    assert stored["greeting"]["greetings"] == 3
    assert all(usable(record) for record in records)


def test_its_table_and_its_columns_stand_in_reports(tmp_path: Path) -> None:
    run_file, records = measured(tmp_path)
    name = name_of(records[0])
    assert f"| {name}" in markdown.render(run_file, records)
    assert json.loads(json_text.render(run_file, records))["sheets"][0]["title"] == "Greetings"
    head, line, *_ = csv_text.render(run_file, records).splitlines()
    assert dict(zip(head.split(","), line.split(","), strict=True))["greetings"] == "3"


def test_a_server_that_fails_is_told_with_its_reason(tmp_path: Path) -> None:
    failing = {cell.variant.name: Behaviour(start_error="no such option") for cell in selected().cells}
    run_file, records = measured(tmp_path, failing)
    assert "not started | no such option" in markdown.render(run_file, records)
    assert "nothing usable was measured" in why_unusable(records)


def test_the_listing_tells_how_long_it_takes() -> None:
    selection, out = selected(), io.StringIO()
    show_listing(Console(file=out, width=200), matrix_file().matrix, selection)
    minutes = f"{len(selection.cells):.1f} minutes of measuring"
    assert f"the probe greeting takes them one by one: about {minutes}" in out.getvalue()
    assert listing_json(selection)["measuring_s"] == 60.0 * len(selection.cells)


def test_settings_that_it_does_not_take_are_mistakes() -> None:
    with pytest.raises(SpecError, match="greeting drives no load"):
        matrix_file(", open: [0, 50], workload: item")


def test_every_probe_says_what_a_suite_may_say_to_it() -> None:
    assert PROBES.keys() == SETTINGS.keys()


def test_an_unknown_probe_is_refused_with_the_nearest_one() -> None:
    text = SMALL.read_text(encoding="utf-8").rstrip() + "\n  hello: {probe: greting, axes: {server: all}}\n"
    with pytest.raises(SpecError) as raised:
        parse_matrix(text)
    assert raised.value.nearest == "greeting"


@pytest.mark.parametrize("probe", [probe for probe in PROBES.values() if isinstance(probe.how, CellByCell)],
                         ids=lambda probe: str(probe.name))  # fmt: skip
def test_no_estimate_is_nothing(probe: Probe) -> None:
    assert probe.seconds(selected()) > 0


def test_the_schema_lists_the_probes_there_are() -> None:
    assert json_schema()["$defs"]["Suite"]["properties"]["probe"]["enum"] == [
        "load",
        "install",
        "startup",
        "shutdown",
        "deploy",
        "greeting",
    ]
