"""The `matrix` program. Only this package prints, reads the command line and sets exit codes.

Exit codes: 0 fine, 1 a finding, 2 bad usage or matrix, 3 the environment, 130 interrupted.
"""

from __future__ import annotations

import json
import signal
import sys
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from orchestrator.cells.expand import Selection, expand
from orchestrator.cli.listing import listing_json, show_listing
from orchestrator.cli.progress import shown
from orchestrator.engines.choose import EngineName, choose_engine
from orchestrator.engines.protocol import Engine
from orchestrator.errors import MatrixError, SpecError
from orchestrator.images.plan import ROOT
from orchestrator.pipeline import Order
from orchestrator.pipeline import run as run_pipeline
from orchestrator.records.model import Record, RunFile
from orchestrator.spec.loading import MatrixFile, load_matrix

CACHE = ROOT / ".cache"
MATRIX = ROOT / "matrix.yaml"
RESULTS = Path("results")
INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="The benchmark matrix for Python application servers.\n\n"
    "Start with `matrix list` (what would be measured), then `matrix run`. "
    "Exit codes: 0 fine, 1 a finding, 2 bad usage or matrix, 3 the environment.",
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

File = Annotated[Path, typer.Option("--file", "-f", help="the matrix", show_default="matrix.yaml")]
SuiteName = Annotated[str, typer.Argument(help="a suite of the matrix")]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", "-o", help="only cells whose id begins so or matches (`granian*c32`); may be repeated"),
]
Results = Annotated[Path, typer.Option("--results", help="folder of the runs")]


@app.command("list")
def list_cells(
    suite: SuiteName = "quick",
    file: File = MATRIX,
    only: Only = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
) -> None:
    """Show the cells of a suite, what is left out and why, and how long it would take.

    Examples: `matrix list`, `matrix list throughput --only 'gunicorn*'`, `matrix list smoke --json`
    """
    source, selection = _selection(file, suite, only)
    if as_json:
        sys.stdout.write(json.dumps(listing_json(selection), indent=1, ensure_ascii=False) + "\n")
    else:
        show_listing(out, source.matrix, selection)


@app.command()
def run(
    suite: SuiteName = "quick",
    file: File = MATRIX,
    only: Only = None,
    engine: Annotated[EngineName, typer.Option(help="auto: docker where one answers, else local")] = "auto",
    results: Results = RESULTS,
    resume: Annotated[Path | None, typer.Option(help="go on with the run in this folder")] = None,
    seed: Annotated[int, typer.Option(help="of the random order of slices")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="the memory engine: invented figures")] = False,
) -> None:
    """Measure a suite: build images, start servers, drive load, write one JSON record per cell, show the tables.

    Examples: `matrix run`, `matrix run smoke --engine local`, `matrix run throughput --only 'uvicorn*'`
    """
    source, selection = _selection(file, suite, only)
    folder = resume or results / f"{datetime.now():%Y-%m-%dT%H-%M-%S}-{suite}"
    chosen = choose_engine("memory" if dry_run else engine, folder.name, CACHE)
    err.print(f"engine: {chosen.facts.name} {chosen.facts.version} ({chosen.facts.why})", markup=False)
    _run(Order(source.matrix, selection, folder, seed, resume is not None), chosen)


def _run(order: Order, engine: Engine) -> tuple[RunFile, list[Record]]:
    """Run with the engine closed at the end, however it comes."""
    try:
        with shown(err) as emit:
            return run_pipeline(order, engine, emit)
    except KeyboardInterrupt:
        kept = f"; whole rounds are kept: matrix run {order.selection.suite} --resume {order.folder}"
        err.print(f"interrupted{kept if (order.folder / 'run.json').exists() else ''}", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        engine.close()


def _selection(file: Path, suite: str, only: list[str] | None) -> tuple[MatrixFile, Selection]:
    source = load_matrix(file)
    try:
        return source, expand(source.matrix, suite, only=tuple(only or ()))
    except SpecError as error:
        raise source.located(error) from error


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Entry point: errors become one message on standard error and an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app(standalone_mode=True)
    except MatrixError as error:
        err.print(str(error), markup=False, soft_wrap=True, style="red")
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
