"""The `matrix` program. Only this package prints, reads the command line and sets exit codes.

Exit codes: 0 fine, 1 a finding, 2 bad usage or matrix, 3 the environment, 130 interrupted.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from loadgen import contract
from orchestrator.cli.closing import costs_told, run_name, why_unusable
from orchestrator.cli.doctor import findings_table
from orchestrator.cli.images import images_summary, images_table
from orchestrator.cli.listing import listing_json, show_listing, tried_line
from orchestrator.cli.progress import shown
from orchestrator.cli.showing import ANOTHER, PIPED_WIDTH, Form, show, show_inside
from orchestrator.cli.stopping import share, with_stopping
from orchestrator.cli.wheels import wheels_table
from orchestrator.engines.choose import EngineName, choose_engine, cpus_of_auto
from orchestrator.engines.docker.client import connect
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.docker.housekeeping import remove_containers, remove_images
from orchestrator.engines.docker.inventory import held_images
from orchestrator.engines.docker.survey import read_survey
from orchestrator.engines.protocol import Engine, EngineFacts
from orchestrator.errors import MatrixError, SpecError, writing
from orchestrator.evidence.model import Record, RunFile
from orchestrator.evidence.store import find_run, held, latest_run, read_run
from orchestrator.evidence.store import upgrade as rewrite
from orchestrator.images.index import look_up
from orchestrator.images.plan import ROOT
from orchestrator.judge.judgement import judge_again
from orchestrator.layout.text import count
from orchestrator.matrix.expand import Selection, expand, one_flavour
from orchestrator.matrix.loading import MatrixFile, json_schema, load_matrix
from orchestrator.matrix.models import Matrix
from orchestrator.pipeline import Order
from orchestrator.pipeline import run as run_pipeline
from orchestrator.probes.placement import place
from orchestrator.probes.trial import try_each
from orchestrator.tools.bases import bases_of, make_bases
from orchestrator.tools.compose import as_yaml, compose_file
from orchestrator.tools.compose_setting import compose_setting, lay_ca
from orchestrator.tools.doctor import exit_code as doctor_exit_code
from orchestrator.tools.doctor import findings, warnings
from orchestrator.tools.environment import gather, glance, is_dead
from orchestrator.tools.field_tables import renew_pages
from orchestrator.tools.wheels import distributions, wheels_json

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
out = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)
err = Console(stderr=True, highlight=False)

File = Annotated[Path, typer.Option("--file", "-f", help="the matrix to read", show_default="matrix.yaml")]
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
    check: Annotated[bool, typer.Option("--check", help="build and start each server once: does it work?")] = False,
    engine: Annotated[EngineName, typer.Option(help="of --check; auto: docker where one answers, else local")] = "auto",
) -> None:
    """Show the cells of a suite, what is left out and why, and how long it would take.

    With `--check` each server is built, started and checked once instead, as a run does it before any timing. Exit
    code 1 where one of them would not be measured.

    Examples: `matrix list`, `matrix list throughput --only 'gunicorn*' --check`, `matrix list smoke --json`
    """
    source = load_matrix(file)
    if check:
        _check(source, suite, only, choose_engine(engine, run_name("check"), CACHE))
        return
    selection = _selection(source, suite, only, cpus_of_auto())
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
    seed: Annotated[int, typer.Option(help="of the random order of slices, and of the arrivals of open loops")] = 1,
    precision: Annotated[
        float | None,
        typer.Option(
            parser=share, metavar="SHARE", help="more rounds until every ratio is known to so much: `3%`, `0.03`"
        ),
    ] = None,
    max_rounds: Annotated[
        int | None, typer.Option(min=1, help="with a precision: the most rounds; by default what the suite has, or 30")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="no server: the memory engine invents figures")] = False,
) -> None:
    """Measure a suite: build images, start servers, drive load, write one JSON record per cell, show the tables.

    Exit code 1 where no cell has a usable result (figures that are not void; of the install probe also an install that
    failed), or one could not be judged; 3 where this machine cannot measure, or the folder cannot be written.

    Examples: `matrix run`, `matrix run smoke --engine local`, `matrix run throughput --only 'uvicorn*' --precision 3%`
    """
    source = load_matrix(file)
    earlier = read_run(resume)[0] if resume else None
    folder = resume or results / run_name(suite)
    chosen = choose_engine("memory" if dry_run else engine, folder.name, CACHE)
    selection = _selection(source, suite, only, chosen.facts.cpus)
    selection = with_stopping(selection, precision, max_rounds, earlier)
    if chosen.facts.name == "local":
        selection = one_flavour(selection)
    err.print(f"engine: {chosen.facts.name} {chosen.facts.version} ({chosen.facts.why})", markup=False)
    with held(folder, new=resume is None):
        if not dry_run:
            _warn(source.matrix, folder, chosen.facts, selection)
        run_file, records = _run(Order(source.matrix, selection, folder, seed, resume is not None), chosen)
    whole = show(out, err, "terminal", run_file, records, None)
    told = "".join(f", {text}" for text in costs_told(run_file.costs))
    err.print(f"\n{count(len(records), 'record')} in {folder}{told}", markup=False, soft_wrap=True)
    err.print(f"the same again, or as markdown, csv, json, svg: matrix report {folder}", markup=False, soft_wrap=True)
    if why := why_unusable(records):
        err.print(why, markup=False, soft_wrap=True, style="red")
    _end(not why and whole)


@app.command()
def report(
    run_folder: Annotated[Path | None, typer.Argument(help="a folder under results/; the newest by default")] = None,
    form: Annotated[Form, typer.Option("--format", help="how to show it")] = "terminal",
    output: Annotated[Path | None, typer.Option("--output", "-O", help="write to this file")] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="put its main tables into this page, after `<!-- results:SUITE -->`",
        ),
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Show the tables of a run again, from its records alone. Exit code 1 where a record or a table had to be left out.

    Examples: `matrix report`, `matrix report FOLDER --format markdown`, `matrix report --format svg -O a.svg`
    """
    found = find_run(run_folder or latest_run(results))
    for trouble in found.troubles:
        err.print(trouble, markup=False, soft_wrap=True, style="yellow")
    if into is not None:
        whole = show_inside(err, into, found.run, found.records)
    else:
        whole = show(out, err, form, found.run, found.records, output)
    _end(whole and not found.troubles)


@app.command()
def judge(run_folders: Annotated[list[Path], typer.Argument(help="folders under results/")]) -> None:
    """Derive the figures and verdicts of runs anew, with the rules of now, from the rounds on record; then show them.

    What was measured stays as it is; run.json says which code judged. Example: `matrix judge results/reference/aa`
    """
    whole = True
    for run_folder in run_folders:
        with held(run_folder, new=False):
            run_file, records = judge_again(run_folder)
        whole &= show(out, err, "terminal", run_file, records, None)
    _end(whole)


@app.command()
def upgrade(run_folders: Annotated[list[Path], typer.Argument(help="folders under results/")]) -> None:
    """Write the records of runs in the form of now; what they hold, figures and verdicts too, stays as it is.

    Older forms are read as they are, so this saves room and no more. Example: `matrix upgrade results/*/`
    """
    for run_folder in run_folders:
        with held(run_folder, new=False):
            number = rewrite(run_folder)
        out.print(f"{run_folder}: {count(number, 'record')}", markup=False, highlight=False, soft_wrap=True)


@app.command()
def doctor(file: File = MATRIX) -> None:
    """Say what on this machine would spoil a measurement, and how to mend it. Exit code 1 where something does."""
    found = findings(gather(load_matrix(file).matrix, ROOT))
    out.print(findings_table(found))
    raise typer.Exit(doctor_exit_code(found))


@app.command()
def compose(
    suite: SuiteName = "quick",
    file: File = MATRIX,
    only: Only = None,
    output: Annotated[Path, typer.Option("--output", "-O", help="`-`: standard output")] = Path("compose.matrix.yaml"),
) -> None:
    """Write a Compose file with one service per image of a suite, so that any cell can be started by hand.

    Examples: `matrix compose`, `matrix compose throughput --only 'granian*' -O -`
    """
    source = load_matrix(file)
    selection = _selection(source, suite, only, cpus_of_auto())
    text = as_yaml(compose_file(source.matrix, selection.cells, *compose_setting(source.matrix, selection.cells)))
    if output == Path("-"):
        sys.stdout.write(text)
        return
    with writing(output, ANOTHER):
        output.write_text(text, encoding="utf-8")
    err.print(f"wrote {output}: how to use it stands at its top", markup=False)
    with writing(ROOT / "images" / "host", "make it writable for the builds of Compose"):
        laid = lay_ca()
    if laid:
        err.print("the host's CA bundle is at images/host/ca.crt, for the builds (git ignores it)", markup=False)


@app.command()
def wheels(
    servers: Annotated[list[str], typer.Argument(metavar="SERVER…", help="server, server/variant, pattern or `all`")],
    file: File = MATRIX,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
) -> None:
    """Ask pip's package index which wheels exist: for CPython 3.13, 3.14 and 3.14 without the GIL, on glibc and musl.

    Of each the wheels for x86_64 and for aarch64, and whether there is an sdist.

    Examples: `matrix wheels granian`, `matrix wheels all --json`
    """
    found = look_up(distributions(load_matrix(file).matrix, servers))
    if as_json:
        sys.stdout.write(json.dumps(wheels_json(found), indent=1) + "\n")
        return
    out.print(wheels_table(found))
    out.print("cp…: a wheel of this ABI; abi3: of the stable ABI; py3: of any Python; —: no wheel to take", style="dim")


@app.command()
def bases(
    flavours: Annotated[list[str] | None, typer.Argument(help="flavours of the matrix; all by default")] = None,
    python: Annotated[str, typer.Option(help="version of Python: 3.13 or 3.14")] = "3.13",
    file: File = MATRIX,
) -> None:
    """Make the stand-ins for base images that cannot be pulled here: from Debian packages, musl from source.

    Examples: `matrix bases`, `matrix bases slim debian`
    """
    matrix = load_matrix(file).matrix
    wanted = bases_of(matrix, flavours or list(matrix.flavours), python)
    make_bases(DockerEngine("bases").store, wanted, lambda text: err.print(text, markup=False, soft_wrap=True))


@app.command()
def images() -> None:
    """Show our images in the Docker Engine: servers, load generator, stand-ins; their size, and what they share."""
    held = held_images(connect())
    out.print(images_table(held))
    out.print(images_summary(held), markup=False)


@app.command()
def clean(
    with_images: Annotated[bool, typer.Option("--images", help="remove our images and stand-ins, too")] = False,
) -> None:
    """Remove the containers that killed runs left behind: those labelled ours whose run is over, and no others."""
    client = connect()
    here = socket.gethostname()
    dead = sorted({item.run for item in read_survey(client).containers if is_dead(item, here)})
    removed = sum(remove_containers(client, run) for run in dead)
    gone = f"removed {count(removed, 'container')} of {count(len(dead), 'run')}"
    out.print(gone if removed else "nothing was left behind")
    if with_images:
        number, kept = remove_images(client, held_images(client))
        told = (f"removed {count(number, 'image')}", *(f"kept {reason}" for reason in kept))
        out.print("\n".join(told), markup=False)


@app.command()
def schema(
    write: Annotated[Path | None, typer.Option(help="folder to write schemas and tables of fields to")] = None,
) -> None:
    """Print the JSON Schema of matrix.yaml for editors, or write all published schemas to a folder.

    Pages in that folder (matrix.md, records.md) get their tables of fields anew.
    """
    documents = {
        "matrix": json_schema(),
        "record": Record.model_json_schema(),
        "run": RunFile.model_json_schema(),
        **contract.schemas(),
    }
    if write is None:
        sys.stdout.write(json.dumps(documents["matrix"], indent=1) + "\n")
        return
    files = {write / f"{name}.schema.json": _indented(content) for name, content in documents.items()}
    for path, text in {**files, **renew_pages(write)}.items():
        with writing(path, "name a folder that is there: --write FOLDER"):
            path.write_text(text, encoding="utf-8")


def _indented(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _warn(matrix: Matrix, folder: Path, engine: EngineFacts, selection: Selection) -> None:
    """Say what would bend figures before time is spent on them."""
    connections = max(cell.connections for cell in selection.cells)
    for warning in warnings(glance(matrix, folder, engine, connections)):
        err.print(warning, markup=False, soft_wrap=True, style="yellow")


def _end(well: bool) -> None:
    """Exit code 0, or 1 for a finding."""
    raise typer.Exit(0 if well else 1)


def _check(source: MatrixFile, suite: str, only: list[str] | None, engine: Engine) -> None:
    """Try the servers of a suite, a line for each, and close the engine however it ends."""
    failed = total = 0
    try:
        selection = _selection(source, suite, only, engine.facts.cpus)
        if engine.facts.name == "local":
            selection = one_flavour(selection)
        err.print(f"engine: {engine.facts.name} {engine.facts.version} ({engine.facts.why})", markup=False)
        with shown(err) as emit:
            for tried in try_each(engine, source.matrix, selection.cells, emit):
                total, failed = total + 1, failed + bool(tried.failures)
                out.print(tried_line(tried), markup=False, soft_wrap=True)
    except KeyboardInterrupt:
        err.print("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        engine.close()
    work = "the server works" if total == 1 else f"all {total} servers work"
    err.print(f"{failed} of {count(total, 'server')} would not be measured" if failed else work)
    raise typer.Exit(1 if failed else 0)


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


def _selection(source: MatrixFile, suite: str, only: list[str] | None, cpus: tuple[int, ...]) -> Selection:
    """The cells of a suite on an engine that may give out `cpus`."""
    try:
        of_server = len(place(source.matrix.cpus, cpus).server)
        return expand(source.matrix, suite, only=tuple(only or ()), cpus=of_server)
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
