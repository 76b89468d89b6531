"""What pydantic finds wrong, said in the words of someone who writes matrix.yaml: no name of a library leaks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from orchestrator.errors import nearest
from orchestrator.matrix.mistake import WrongText, shown
from orchestrator.matrix.models import Matrix
from orchestrator.matrix.values import NAME, PATH, PYTHON, SYSTEM, VARIABLE, WORD
from orchestrator.matrix.yaml_text import FieldPath

Words = tuple[str, str, str]
"""What was wrong, the nearest valid value, the next step."""

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a group of fields (`name: …`)",
    "model_type": "a group of fields (`name: …`)",
}
_FORMS = {
    NAME: "a name of lower-case letters, digits and hyphens",
    PYTHON: 'a version of Python such as "3.13"',
    PATH: "a path that begins with /",
    VARIABLE: "the name of an environment variable",
    SYSTEM: "a package of the distribution such as libev-dev",
}


def explained(detail: ErrorDetails, path: FieldPath) -> Words:
    """The words for one error of pydantic at `path`."""
    kind = detail["type"]
    if kind in _WANTED:
        return _wrong_type(_WANTED[kind], detail["input"])
    found, ctx = _RULES.get(kind), detail.get("ctx", {})
    if WORD in detail["loc"]:
        ctx |= {"expected": f"a whole number or {ctx['expected']}"}
    return found(detail["input"], ctx, path) if found else (detail["msg"], "", "")


def keys_at(path: FieldPath) -> list[str]:
    """The field names of the model at `path`: the walk follows the annotations of the models."""
    model: Any = Matrix
    for part in path:
        model = _step(model, part)
    model = next((arg for arg in getattr(model, "__args__", ()) if arg is not type(None)), model)
    return sorted(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []


def _step(model: Any, part: str | int) -> Any:
    if isinstance(model, type) and issubclass(model, BaseModel) and part in model.model_fields:
        return model.model_fields[str(part)].annotation
    inner = [arg for arg in getattr(model, "__args__", ()) if arg not in (..., type(None))]
    return inner[-1] if inner else None


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a group of fields"
    if isinstance(value, list):
        return "a list"
    text = shown(value) if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _wrong_type(wanted: str, value: object) -> Words:
    if value is None:
        step = "write {} for one with nothing to say" if wanted.startswith("a group") else ""
        return f"there is no value, and {wanted} is wanted", "", step
    if wanted == "text" and isinstance(value, bool | int | float):
        kind = "true or false" if isinstance(value, bool) else "a number"
        return f"{_shown(value)} is {kind} to YAML, and text is wanted", "", "write it in quotes"
    if wanted.startswith("a list") and isinstance(value, str):
        return f"{_shown(value)} is one value, and {wanted} is wanted", "", f"write [{value}]"
    return f"{_shown(value)} is not {wanted}", "", ""


def _unknown_field(_: object, __: Mapping[str, Any], path: FieldPath) -> Words:
    valid = keys_at(path[:-1])
    return (
        f"there is no field {str(path[-1])!r} here", nearest(str(path[-1]), valid), f"valid fields: {', '.join(valid)}"
    )  # fmt: skip


def _missing(_: object, __: Mapping[str, Any], path: FieldPath) -> Words:
    return f"the field {str(path[-1])!r} is missing", "", f"add {path[-1]}: …"


def _not_listed(value: object, ctx: Mapping[str, Any], _: FieldPath) -> Words:
    expected = str(ctx["expected"])
    valid = expected.replace("'", "").replace(" or ", ", ").split(", ")
    return f"{_shown(value)} is not valid: it must be {expected}", nearest(str(value), valid), ""


def _wrong_form(value: object, ctx: Mapping[str, Any], _: FieldPath) -> Words:
    name = re.sub("[^a-z0-9]+", "-", str(value).lower()).strip("-")
    close = {NAME: name, PATH: f"/{value}"}.get(str(ctx["pattern"]), "")
    return f"{_shown(value)} is not {_FORMS[str(ctx['pattern'])]}", close[:60], ""


def _wrong_text(_: object, ctx: Mapping[str, Any], __: FieldPath) -> Words:
    error: WrongText = ctx["error"]
    return error.words


def _empty(_: object, __: Mapping[str, Any], ___: FieldPath) -> Words:
    return "this is empty", "", "give at least one value, or leave the field out"


def _beyond(relation: str, bound: str) -> Callable[[object, Mapping[str, Any], FieldPath], Words]:
    return lambda value, ctx, _: (f"{_shown(value)} is not valid: it must be {relation} {ctx[bound]:g}", "", "")


_RULES: Mapping[str, Callable[[object, Mapping[str, Any], FieldPath], Words]] = {
    "extra_forbidden": _unknown_field,
    "missing": _missing,
    "literal_error": _not_listed,
    "string_pattern_mismatch": _wrong_form,
    "value_error": _wrong_text,
    "too_short": _empty,
    "string_too_short": _empty,
    "greater_than": _beyond("more than", "gt"),
    "greater_than_equal": _beyond("at least", "ge"),
    "less_than_equal": _beyond("at most", "le"),
}
