"""matrix.yaml -> Matrix, or every mistake in it with file:line, field, nearest valid name and next step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from orchestrator.errors import Place, SpecError, SpecErrors, nearest
from orchestrator.spec.checks import mistakes
from orchestrator.spec.models import Matrix
from orchestrator.spec.yaml_text import FieldPath, YamlText, dotted, parse_yaml


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
    """Check the text of a matrix file; `file` is the name that errors give."""
    source = parse_yaml(text, file)
    try:
        matrix = Matrix.model_validate_json(json.dumps(source.data, default=str))
    except ValidationError as error:
        raise _one_or_all([_explained(source, detail) for detail in _distinct(error)]) from error
    found = [
        SpecError(
            mistake.what,
            place=source.place(mistake.path),
            nearest=mistake.nearest,
            next_step=mistake.next_step,
        )
        for mistake in mistakes(matrix)
    ]
    if found:
        raise _one_or_all(found)
    return MatrixFile(matrix, source)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of matrix.yaml, for editors."""
    return Matrix.model_json_schema()


def _one_or_all(errors: list[SpecError]) -> SpecError:
    return errors[0] if len(errors) == 1 else SpecErrors(errors)


def _distinct(error: ValidationError) -> Iterator[ErrorDetails]:
    seen: set[tuple[object, ...]] = set()
    for detail in error.errors():
        if detail["loc"] not in seen:
            seen.add(detail["loc"])
            yield detail


def _explained(source: YamlText, detail: ErrorDetails) -> SpecError:
    path: FieldPath = tuple(part for part in detail["loc"] if part != "[key]")
    what, near, step = detail["msg"], "", ""
    if detail["type"] == "extra_forbidden":
        valid = _keys_at(path[:-1])
        what, near = f"there is no field {path[-1]!r} here", nearest(str(path[-1]), valid)
        step = f"valid fields: {', '.join(valid)}"
    elif detail["type"] == "missing":
        what, step = "this field is missing", f"add {path[-1]}: …"
    elif detail["type"] == "literal_error":
        expected = str(detail.get("ctx", {}).get("expected", ""))
        near = nearest(str(detail["input"]), expected.replace("'", "").replace(" or ", ", ").split(", "))
        what = f"{detail['input']!r} is not valid: it must be {expected}"
    elif detail["type"] == "string_type" and isinstance(detail["input"], int | float):
        what, step = (
            f"{detail['input']!r} is a number, and text is wanted",
            f'write it in quotes: "{detail["input"]}"',
        )
    elif detail["type"] == "string_pattern_mismatch":
        what = f"{detail['input']!r} does not have the form {detail.get('ctx', {}).get('pattern')}"
    return SpecError(what, place=source.place(path), nearest=near, next_step=step)


def _keys_at(path: FieldPath) -> list[str]:
    """The field names of the model at `path`: the walk follows the annotations of the models."""
    model: Any = Matrix
    for part in path:
        model = _step(model, part)
    return sorted(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []


def _step(model: Any, part: str | int) -> Any:
    if isinstance(model, type) and issubclass(model, BaseModel) and part in model.model_fields:
        return model.model_fields[str(part)].annotation
    inner = [arg for arg in getattr(model, "__args__", ()) if arg is not ...]
    return inner[-1] if inner else None
