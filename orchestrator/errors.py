"""The one tree of errors: each says where, what was wrong, the nearest valid value and the next step.

Only the CLI prints an error or turns it into an exit code.
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent


@dataclass(frozen=True)
class Place:
    """Where a mistake stands: a file, a line in it (1-based) and the path of the field."""

    file: str = ""
    line: int | None = None
    field: str = ""

    def __str__(self) -> str:
        spot = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (spot, self.field) if part)


class MatrixError(Exception):
    """Base of all errors of this program. `exit_code` is what the CLI ends with."""

    exit_code = 1

    def __init__(self, what: str, *, place: Place | None = None, nearest: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.place = place or Place()
        self.nearest = nearest
        self.next_step = next_step

    def __str__(self) -> str:
        head = f"{self.place}: {self.what}" if str(self.place) else self.what
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        step = f"\n  -> {self.next_step}" if self.next_step else ""
        return f"{head}{hint}{step}"


class SpecError(MatrixError):
    """A mistake in matrix.yaml or in what was asked of it on the command line."""

    exit_code = 2


class SpecErrors(SpecError):
    """Several mistakes of one matrix.yaml, reported together."""

    def __init__(self, errors: Iterable[SpecError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))


class EnvironmentProblem(MatrixError):
    """Something that this machine lacks: Docker, a base image, a network, a permission."""

    exit_code = 3


class BuildFailed(MatrixError):
    """An image could not be built for a reason that is not the server's own (those are install outcomes)."""

    exit_code = 3


class ServerFailed(MatrixError):
    """A server did not start, or did not give a right answer in time. Its cells record it."""


class CheckFailed(ServerFailed):
    """A server started, and answers something else than it should, or is not what its entry declares."""


class LoadFailed(MatrixError):
    """The load generator could not do its work."""


class AgentGone(LoadFailed):
    """The load generator's process or container is no more."""


@contextmanager
def writing(path: Path, next_step: str) -> Iterator[None]:
    """Raises EnvironmentProblem, with the system's own reason, where what is done inside cannot write to `path`."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has seen enough
    except OSError as error:
        why = f"cannot be written: {error.strerror or error}"
        raise EnvironmentProblem(why, place=Place(str(path)), next_step=next_step) from error


def fault(error: Exception) -> str:
    """A mistake of this program in one line: TypeError: not a number (orchestrator/judge/summary.py:117)."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(ROOT)] or frames
    first = (str(error).splitlines() or [""])[0]
    said = f"{type(error).__name__}: {first}"
    if not ours:
        return said
    path = Path(ours[-1].filename)
    name = path.relative_to(ROOT.parent).as_posix() if path.is_relative_to(ROOT) else path.name
    return f"{said} ({name}:{ours[-1].lineno})"


def nearest(name: str, valid: Iterable[str]) -> str:
    """The valid name closest to `name`, or "" where none is close."""
    return next(iter(difflib.get_close_matches(name, list(valid), n=1, cutoff=0.5)), "")
