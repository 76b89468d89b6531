"""The tables of fields in docs/: made from the models' own descriptions, between markers; the prose around is by hand.

A page asks for the table of a model with `<!-- fields: Name -->`, for that of the figures that a view may show with
`<!-- figures -->`, and gets it up to `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from orchestrator.errors import SpecError
from orchestrator.evidence.model import Record, RunFile
from orchestrator.figures import SHOWN
from orchestrator.matrix.models import Axes, Entry, Matrix, Schedule, VariantEntry, View

Models = Mapping[str, type[BaseModel]]
WITH_DEFAULTS = (Axes, Schedule, View)
"""Their tables have a column of defaults."""
_MARKED = re.compile(r"(<!-- fields: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_FIGURES = re.compile(r"(<!-- figures -->\n).*?(<!-- end -->)", re.DOTALL)


def models_of(*roots: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """All models that a document of one of `roots` may hold, by name, each after those that name it."""
    found: dict[str, type[BaseModel]] = {}
    waiting = list(roots)
    while waiting:
        model = waiting.pop(0)
        if model.__name__ not in found:
            found[model.__name__] = model
            waiting += [inner for field in model.model_fields.values() for inner in _inner(field.annotation)]
    return found


PAGES: Mapping[str, Callable[[], Models]] = {
    "matrix.md": lambda: models_of(Matrix),
    "records.md": lambda: models_of(RunFile, Record),
}
"""Pages of docs/ that hold tables of fields, with the models that they may name."""


def _inner(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _inner(part)


def renewed(page: str, models: Models) -> str:
    """The text of a page with its tables made anew. Raises SpecError where it names a model that there is not."""

    def table(found: re.Match[str]) -> str:
        if found[2] not in models:
            known = ", ".join(models)
            raise SpecError(f"there is no model {found[2]} to make a table of", next_step=f"one of: {known}")
        return f"{found[1]}{field_table(models[found[2]])}{found[3]}"

    return _FIGURES.sub(lambda found: f"{found[1]}{figure_table()}{found[2]}", _MARKED.sub(table, page))


def field_table(model: type[BaseModel]) -> str:
    """Markdown: a row for each field of its own, with its default where those of the model are worth telling."""
    defaults = model in WITH_DEFAULTS
    shared = Entry.model_fields if model is VariantEntry else {}
    rows = [
        (f"`{field.alias or name}`", *([_default(field)] * defaults), described(field))
        for name, field in model.model_fields.items()
        if name not in shared
    ]
    return _table(("field", *(["default"] * defaults), "meaning"), rows)


def figure_table() -> str:
    """Markdown: a row for each figure that a view may show, with its unit, and which way is better."""
    rows = [
        (f"`{name}`", shown.unit.strip() or "—", figure.better or "—", shown.about or figure.about)
        for name, (figure, shown) in SHOWN.items()
        if shown.viewed
    ]
    return _table(("figure", "unit", "better", "meaning"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ("---",) * len(head), *rows))


def renew_pages(folder: Path) -> dict[Path, str]:
    """Each page of a folder that has tables of fields, with its text as it should be."""
    pages = {folder / name: models for name, models in PAGES.items() if (folder / name).is_file()}
    return {path: renewed(path.read_text(encoding="utf-8"), models()) for path, models in pages.items()}


def described(field: FieldInfo) -> str:
    """What the field says of itself, and links to the models that it holds."""
    links = [f"[{model.__name__}](#{model.__name__.lower()})" for model in _inner(field.annotation)]
    named = [link for link in links if link not in (field.description or "")]
    text = (field.description or "").replace("|", "\\|")
    return ": ".join(filter(None, (text, ", ".join(named))))


def _default(field: FieldInfo) -> str:
    value = field.default
    values = value if isinstance(value, tuple) else (value,)
    return ", ".join(f"`{_written(one)}`" for one in values)


def _written(value: object) -> str:
    """As YAML has it: a version in quotes, since it is text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return f'"{value}"' if isinstance(value, str) and value[:1].isdigit() else str(value)
