"""A run's folder: run.json and cells/<id>.json, each written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from orchestrator.cells.model import file_name
from orchestrator.errors import Place, SpecError
from orchestrator.records.model import Record, RunFile
from orchestrator.records.stored import Stored

RUN_FILE = "run.json"
S = TypeVar("S", bound=Stored)


def write_run(folder: Path, run: RunFile) -> None:
    _write(folder / RUN_FILE, run)


def write_records(folder: Path, records: Sequence[Record]) -> None:
    for record in records:
        _write(folder / "cells" / file_name(record.id), record)


def read_run(folder: Path) -> tuple[RunFile, list[Record]]:
    """A run and its records in the order of its cells. Raises SpecError where it holds none, or a damaged one."""
    if not (folder / RUN_FILE).is_file():
        raise SpecError(
            "holds no run", place=Place(str(folder)), next_step="name a folder under results/, or start one: matrix run"
        )
    run = _read(folder / RUN_FILE, RunFile)
    paths = [folder / "cells" / file_name(cell) for cell in run.cells]
    return run, [_read(path, Record) for path in paths if path.is_file()]


def latest_run(results: Path) -> Path:
    """The newest run under `results`. Raises SpecError where there is none."""
    runs = sorted(results.glob(f"*/{RUN_FILE}"), key=lambda path: path.stat().st_mtime)
    if not runs:
        raise SpecError("no run here yet", place=Place(str(results)), next_step="start one: matrix run")
    return runs[-1].parent


def _write(path: Path, stored: Stored) -> None:
    """Written beside and renamed over: a reader never sees half a file, a killed run leaves the last whole one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    beside.write_text(stored.model_dump_json(indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def _read(path: Path, model: type[S]) -> S:
    try:
        return model.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise SpecError(
            first["msg"], place=Place(str(path), None, field), next_step="move the damaged file away"
        ) from error
