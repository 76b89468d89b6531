"""Fields that a table names, given to a model or a dataclass: what the table has a row for, the class has a field for.

A class says under `if TYPE_CHECKING` which of these fields are read by their names, so that mypy knows their types;
tests/unit/matrix/test_axes_table.py holds these lines to the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, create_model

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
Fields = Mapping[str, tuple[Any, Any]]
"""By name: the type, and what pydantic knows of the field beside it."""


def with_fields(fields: Fields) -> Callable[[type[M]], type[M]]:
    """Add fields to a model, behind those that it has."""

    def added(model: type[M]) -> type[M]:
        made: Any = create_model
        found: type[M] = made(
            model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **fields
        )
        return found

    return added


def with_attributes(fields: Fields) -> Callable[[type[T]], type[T]]:
    """Add attributes with a type and a default (`...` for none) to a class, for `dataclass` to make fields of."""

    def added(plain: type[T]) -> type[T]:
        plain.__annotations__ = {**plain.__annotations__, **{name: kind for name, (kind, _) in fields.items()}}
        for name, (_, default) in fields.items():
            if default is not ...:
                setattr(plain, name, default)
        return plain

    return added
