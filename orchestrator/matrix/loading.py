"""matrix.yaml -> Matrix, or every mistake in it with file:line, field, nearest valid name and next step."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from orchestrator.errors import Place, SpecError, SpecErrors
from orchestrator.matrix.checks import mistakes
from orchestrator.matrix.models import Matrix
from orchestrator.matrix.values import UNION_TAGS
from orchestrator.matrix.wording import explained
from orchestrator.matrix.yaml_text import FieldPath, YamlText, dotted, parse_yaml

MOST_TOLD = 20
"""So many mistakes are reported at once."""


@dataclass(frozen=True)
class MatrixFile:
    """A checked matrix and the text it came from, which knows the lines."""

    matrix: Matrix
    source: YamlText

    def located(self, error: SpecError) -> SpecError:
        """`error`, found by a later stage that knows only the field, with file and line."""
        path = next((path for path in self.source.lines if dotted(path) == error.place.field), ())
        place = self.source.place(path) if path else error.place
        return SpecError(error.what, place=place, nearest=error.nearest, next_step=error.next_step)


def load_matrix(path: Path) -> MatrixFile:
    """Read and check a matrix file. Raises SpecError (one mistake) or SpecErrors (several)."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(
            f"cannot be read: {error.strerror}", place=Place(str(path)), next_step="name it with --file FILE"
        ) from error
    except UnicodeDecodeError as error:
        raise SpecError(f"is not UTF-8 text: {error.reason}", place=Place(str(path))) from error
    return parse_matrix(text, path.name)


def parse_matrix(text: str, file: str = "matrix.yaml") -> MatrixFile:
    """Check the text of a matrix file; `file` is the name that errors give. Raises SpecError or SpecErrors."""
    source = parse_yaml(text, file)
    try:
        matrix = Matrix.model_validate_json(json.dumps(source.data))
    except ValidationError as error:
        raise _one_or_all(_explained(source, detail) for detail in error.errors()) from error
    found = [SpecError(m.what, place=source.place(m.path), nearest=m.nearest, next_step=m.next_step)
             for m in islice(mistakes(matrix), MOST_TOLD)]  # fmt: skip
    if found:
        raise _one_or_all(found)
    return MatrixFile(matrix, source)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of matrix.yaml, for editors."""
    return Matrix.model_json_schema()


def _one_or_all(errors: Iterable[SpecError]) -> SpecError:
    """Each mistake once, in the order of the file, the first MOST_TOLD of them."""
    by_line = sorted({str(error): error for error in errors}.values(), key=lambda error: error.place.line or 0)
    distinct = by_line[:MOST_TOLD]
    return distinct[0] if len(distinct) == 1 else SpecErrors(distinct)


def _explained(source: YamlText, detail: ErrorDetails) -> SpecError:
    of_key = detail["loc"][-1:] == ("[key]",) and detail["type"] != "extra_forbidden"
    path: FieldPath = tuple(part for part in detail["loc"][: -1 if of_key else None] if part not in UNION_TAGS)
    what, near, step = explained(detail, path)
    return SpecError(what, place=source.place(path), nearest=near, next_step=step)
