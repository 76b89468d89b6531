"""A run's folder: run.json, images.json, cells/<id>.json, each written whole or not at all, by one process at a time.

What was measured only ever grows: rounds are added to a cell's file, and images to images.json. What follows from it is
a part of the cell's file of its own, `judgement`.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import ValidationError

from orchestrator.errors import Place, SpecError, writing
from orchestrator.evidence import form
from orchestrator.evidence.model import Record, RunFile
from orchestrator.matrix.cell import file_name
from orchestrator.stored import Stored

RUN_FILE = "run.json"
IMAGES = "images.json"
CELLS = "cells"
LOCK = ".lock"
TRIED_BYTES = 1 << 20
"""So much must fit into a run's folder before anything is measured."""
NAMED = 3
"""So many files are named where more are missing."""
_ELSEWHERE = "make room, or write elsewhere: --results FOLDER"
S = TypeVar("S", bound=Stored)


@dataclass(frozen=True)
class Found:
    """A run as its folder holds it. `troubles`: a sentence for all that is missing, damaged or not of this run."""

    run: RunFile
    records: list[Record]
    troubles: tuple[str, ...]


@contextmanager
def held(folder: Path, *, new: bool) -> Iterator[None]:
    """Keep a run's folder for this process while it measures; a `new` one is made, and goes again where it stays empty.

    Raises SpecError where another process has it or it holds no run, and EnvironmentProblem where it cannot be written.
    """
    if not new:
        _read_run_file(folder)
    with writing(folder, _ELSEWHERE):
        if new:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
        lock = (folder / LOCK).open("a+", encoding="utf-8")
    with lock:
        _lock(folder, lock)
        try:
            _try(folder)
            yield
        finally:
            if new and not (folder / RUN_FILE).exists():
                (folder / LOCK).unlink(missing_ok=True)
                with suppress(OSError):
                    folder.rmdir()


def _lock(folder: Path, lock: IO[str]) -> None:
    """The kernel gives it back however the process ends."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        raise SpecError(
            f"is being measured right now by process {lock.read().strip() or 'unknown'}",
            place=Place(str(folder)),
            next_step="wait until it has ended, or start a run of its own: leave out --resume",
        ) from None
    except OSError:
        return  # a file system without locks
    with writing(folder, _ELSEWHERE):
        lock.truncate(0)
        print(os.getpid(), file=lock, flush=True)


def _try(folder: Path) -> None:
    """Find out now, not after hours, that there is no room or no permission."""
    tried = folder / f".{os.getpid()}.tmp"
    with writing(folder, _ELSEWHERE):
        try:
            tried.write_bytes(bytes(TRIED_BYTES))
        finally:
            tried.unlink(missing_ok=True)


def write_run(folder: Path, run: RunFile) -> None:
    _write(folder / RUN_FILE, form.as_text(run.model_dump(mode="json")))


def write_records(folder: Path, records: Sequence[Record]) -> None:
    """Each to its own file. The facts of an image, which cells share, go to images.json, and its reference stands."""
    known = _read_images(folder)
    images = {r.image.reference: r.image.model_dump(mode="json") for r in records if r.image} | known
    if images != known:
        _write(folder / IMAGES, form.as_text(images))
    for record in records:
        document = _document(record)
        image = document.get("image")
        shared = image is not None and images[image["reference"]] == image
        document |= {"image": image["reference"]} if image and shared else {}
        _write(folder / CELLS / file_name(record.id), form.as_text(form.written(document)))


def upgrade(folder: Path) -> int:
    """Write a run anew in the form of now, and nothing else; the number of its records.

    Raises SpecError where it holds no run or a damaged one, and where what was written does not read the same.
    """
    run, records = read_run(folder)
    write_records(folder, records)
    write_run(folder, run)
    if read_run(folder) != (run, records):
        raise SpecError("does not read the same in the new form", place=Place(str(folder)), next_step="report it")
    return len(records)


def _document(record: Record) -> dict[str, Any]:
    """Without fields that have their defaults; but the axes are whole, and rounds, so that all have the same fields."""
    kept: dict[str, Any] = {"cell": record.cell.model_dump(mode="json")}
    kept |= {"rounds": [one.model_dump(mode="json") for one in record.rounds]} if record.rounds else {}
    return record.model_dump(mode="json", exclude_defaults=True, exclude={"rounds"}) | kept


def read_run(folder: Path) -> tuple[RunFile, list[Record]]:
    """A run and its records in the order of its cells.

    Raises SpecError where it holds none, or a record that is damaged or of another run.
    """
    run, images = _read_run_file(folder), _read_images(folder)
    paths = {cell: folder / CELLS / file_name(cell) for cell in run.cells}
    return run, [_read_record(run, images, cell, path) for cell, path in paths.items() if path.is_file()]


def find_run(folder: Path) -> Found:
    """The same with all records that can be read, and what is wrong with the others. Raises SpecError without a run."""
    run, images = _read_run_file(folder), _read_images(folder)
    paths = {cell: folder / CELLS / file_name(cell) for cell in run.cells}
    records, troubles = [], []
    for cell, path in paths.items():
        try:
            records += [_read_record(run, images, cell, path)] if path.is_file() else []
        except SpecError as error:
            troubles.append(f"left out: {error.place}: {error.what}")
    missing = [path.name for path in paths.values() if not path.is_file()] if run.complete else []
    known = {path.name for path in paths.values()}
    strange = sorted(path.name for path in (folder / CELLS).glob("*.json") if path.name not in known)
    told = [_told(folder, missing, "missing, though the run is complete")]
    told += [_told(folder, strange, "of no cell of this run")]
    return Found(run, records, (*troubles, *filter(None, told)))


def _told(folder: Path, names: Sequence[str], what: str) -> str:
    if not names:
        return ""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    be = "is" if len(names) == 1 else "are"
    return f"left out: {folder / CELLS}: {', '.join(names[:NAMED])}{more} {be} {what}"


def latest_run(results: Path) -> Path:
    """The newest run under `results`. Raises SpecError where there is none."""
    runs = sorted(results.glob(f"*/{RUN_FILE}"), key=lambda path: path.stat().st_mtime)
    if not runs:
        raise SpecError("no run here yet", place=Place(str(results)), next_step="start one: matrix run")
    return runs[-1].parent


def _write(path: Path, text: str) -> None:
    """Written beside and renamed over: a reader never sees half a file, a killed run leaves the last whole one."""
    with writing(path, "make room; what was written before is whole: go on with --resume"):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def _read_run_file(folder: Path) -> RunFile:
    if not (folder / RUN_FILE).is_file():
        raise SpecError(
            "holds no run", place=Place(str(folder)), next_step="name a folder under results/, or start one: matrix run"
        )
    return _valid(RunFile, _read(folder / RUN_FILE), folder / RUN_FILE)


def _read_images(folder: Path) -> dict[str, Any]:
    """By reference; runs of before images had a file of their own have none."""
    return _read(folder / IMAGES) if (folder / IMAGES).is_file() else {}


def _read_record(run: RunFile, images: Mapping[str, Any], cell: str, path: Path) -> Record:
    """Of this form or an older one. Records of before they named their run are taken for its own."""
    held = _read(path)
    if isinstance(image := held.get("image"), str):
        held["image"] = images.get(image, {"reference": f"{image}, which is not in {IMAGES}"})
    record = _valid(Record, _document_of(held, path), path)
    strange = f"of the cell {record.id}" if record.id != cell else ""
    strange = f"of another run, {record.run}" if record.run not in ("", run.id) else strange
    if strange:
        raise SpecError(f"the record is {strange}", place=Place(str(path)), next_step="move it away")
    return record


def _document_of(held: Mapping[str, Any], path: Path) -> dict[str, Any]:
    try:
        return form.read(held)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from None


def _valid(model: type[S], document: Mapping[str, Any], path: Path) -> S:
    try:
        return model.model_validate_json(json.dumps(document))
    except ValidationError as error:
        first = error.errors()[0]
        raise _damaged(path, first["msg"], ".".join(str(part) for part in first["loc"])) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(path.read_bytes())
    except ValueError as error:
        raise _damaged(path, f"Invalid JSON: {error}") from None
    except OSError as error:
        raise _damaged(path, f"cannot be read: {error.strerror}") from None
    if not isinstance(held, dict):
        raise _damaged(path, "holds no JSON object")
    return held


def _damaged(path: Path, what: str, field: str = "") -> SpecError:
    return SpecError(what, place=Place(str(path), None, field), next_step="move the damaged file away")
