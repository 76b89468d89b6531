"""How the benches of the method talk: progress on standard error, tables on standard output, exit codes of `matrix`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from orchestrator.errors import MatrixError
from orchestrator.probes.events import Told

INTERRUPTED = 130


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def tell(event: object) -> None:
    """Pass on what an engine says; the events of slices and rounds stay untold."""
    if isinstance(event, Told):
        say(event.text)


def finish(measure: Callable[[], None], report: Callable[[], str]) -> int:
    """Measure, then print the report of what there is, also after an interrupt or an error. The exit code."""
    code = 0
    try:
        measure()
    except MatrixError as error:
        say(str(error))
        code = error.exit_code
    except KeyboardInterrupt:
        say("interrupted; the same command goes on")
        code = INTERRUPTED
    try:
        print(report())
    except (MatrixError, ValueError) as error:
        say(str(error))
        return code or 1
    return code
