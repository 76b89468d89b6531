"""The types of single values in matrix.yaml: names, numbers, lists, commands."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, StringConstraints, Tag

from orchestrator.matrix.command import one_line
from orchestrator.matrix.requirement import distribution_name, each_once, pinned

NAME, PYTHON, PATH = r"^[a-z0-9][a-z0-9-]*$", r"^3\.[0-9]+t?$", r"^/"
VARIABLE, SYSTEM = r"^[A-Za-z_][A-Za-z0-9_]*$", r"^[a-z0-9][a-z0-9.+:=~_-]*$"
Name = Annotated[str, StringConstraints(pattern=NAME)]
Mode = Literal["wheel", "sdist"]
PositiveInt = Annotated[int, Field(gt=0, le=65536)]
Threads = Annotated[int, Field(ge=0, le=65536)]
Percent = Annotated[int, Field(ge=0, le=200)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Variable = Annotated[str, StringConstraints(pattern=VARIABLE)]
System = Annotated[str, StringConstraints(pattern=SYSTEM)]
Python = Annotated[str, StringConstraints(pattern=PYTHON)]

NUMBER, WORD = UNION_TAGS = "[number]", "[word]"
"""What pydantic adds to the path of a field that takes a number or a word."""

Workers = Annotated[
    Annotated[PositiveInt, Tag(NUMBER)] | Annotated[Literal["cpus"], Tag(WORD)],
    Discriminator(lambda value: WORD if isinstance(value, str) else NUMBER),
]
"""cpus: as many as there are CPUs for the server."""

Distribution = Annotated[str, AfterValidator(distribution_name)]
"""Written as on the index, kept as packages are compared: `mod_wsgi` becomes `mod-wsgi`."""

Install = Annotated[tuple[Annotated[str, AfterValidator(pinned)], ...], AfterValidator(each_once)]

Command = Annotated[str, AfterValidator(one_line)]
"""A launch command or a part of one, in one line whatever lines it was written in."""

T = TypeVar("T")


def _several(value: object) -> object:
    return tuple(value) if isinstance(value, list) else (value,)


Many = Annotated[tuple[T, ...], BeforeValidator(_several, json_schema_input_type=Any), Field(min_length=1)]
"""One value or a list of them: `flavour: slim` and `flavour: [slim, alpine]` both read well."""
