"""Showing a report on the terminal, in a file or inside a page; what cannot be shown is told in a line."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from rich.console import Console

from orchestrator.errors import MatrixError, Place, SpecError, fault, writing
from orchestrator.evidence.model import Record, RunFile
from orchestrator.report import csv_text, json_text, markdown, picture, terminal
from orchestrator.report.document import document
from orchestrator.report.embed import embed

Form = Literal["terminal", "markdown", "csv", "json", "svg"]
FORMS: dict[Form, Callable[[RunFile, list[Record]], str | bytes]] = {
    "markdown": markdown.render,
    "csv": csv_text.render,
    "json": json_text.render,
    "svg": picture.render,
}
PIPED_WIDTH = 160
"""Columns where the output is no terminal: wide enough for whole tables."""

ANOTHER, ROOM = "name another file: -O FILE", "make room where it is sent to"
STANDARD_OUTPUT = Path("standard output")


def show(out: Console, err: Console, form: Form, run_file: RunFile, records: list[Record], output: Path | None) -> bool:
    """Print a report, or write it to `output`; whether all of it could be made. Raises EnvironmentProblem."""

    def make() -> None:
        if form == "terminal" and output is None:
            with writing(STANDARD_OUTPUT, ROOM):
                out.print(terminal.render(run_file, records))
        else:
            _put(output, _rendered(form, run_file, records))

    return _guarded(err, make) and not document(run_file, records).failures


def show_inside(err: Console, page: Path, run_file: RunFile, records: list[Record]) -> bool:
    """Put the main table into a page; whether it could be made. Raises SpecError where the page has no place for it."""
    return _guarded(err, lambda: _put(page, _embedded(page, run_file, records)))


def _rendered(form: Form, run_file: RunFile, records: list[Record]) -> bytes:
    if form == "terminal":
        page = Console(file=io.StringIO(), highlight=False, width=PIPED_WIDTH, color_system=None)
        with page.capture() as captured:
            page.print(terminal.render(run_file, records))
        return captured.get().encode()
    content = FORMS[form](run_file, records)
    return content if isinstance(content, bytes) else content.encode()


def _embedded(page: Path, run_file: RunFile, records: list[Record]) -> bytes:
    try:
        text = page.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SpecError(f"is no text in UTF-8: {error.reason}", place=Place(str(page))) from error
    return embed(text, run_file.suite, markdown.excerpt(run_file, records)).encode()


def _put(path: Path | None, data: bytes) -> None:
    with writing(path or STANDARD_OUTPUT, ANOTHER if path else ROOM):
        if path:
            path.write_bytes(data)
        else:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()


def _guarded(err: Console, work: Callable[[], None]) -> bool:
    """Whether it went well: a fault of this program in showing something is told in a line."""
    try:
        work()
    except (MatrixError, OSError):
        raise
    except Exception as error:
        told = f"the report could not be shown, for a fault of this program: {fault(error)}"
        err.print(f"{told}; the records are whole", markup=False, soft_wrap=True, style="red")
        return False
    return True
