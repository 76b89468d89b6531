"""Questions as they are read: whatever has not the form that the contract says is refused by the name of its field."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from loadgen.errors import SpecError

T = TypeVar("T")
_WHERE = re.compile(r" - at (?:`key` in )?`\$\.?(.*)`$")
_FIELD = re.compile(r"Object contains unknown field `(.*)`")
_VALUE = re.compile(r"Invalid (?:enum )?value (.*)")


def decode(line: str, kind: Any) -> Any:
    """What a line of JSON says. Raises SpecError, or json's and msgspec's DecodeError for what is no JSON."""
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.ValidationError as error:
        raise refusal(error, kind) from error


def convert(document: object, kind: type[T], root: str = "") -> T:
    """The same of plain objects; their fields are named after `root`. Raises SpecError."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise refusal(error, kind, root) from error


def refusal(error: msgspec.ValidationError, kind: Any, root: str = "") -> SpecError:
    """The error in words: where, what is wrong, and the nearest name that would be right."""
    text = str(error)
    path = found[1] if (found := _WHERE.search(text)) else ""
    what = _WHERE.sub("", text)
    names = [name for name in re.sub(r"\[[^]]*\]", "", path).split(".") if name]
    where = ".".join(filter(None, (root, path))) or "the question"
    if unknown := _FIELD.fullmatch(what):
        what = f"there is no field {_or_nearest(unknown[1], _fields(kind, names))}"
    elif wrong := _VALUE.fullmatch(what):
        allowed = _values(kind, names)
        what = f"none of {', '.join(allowed)}: {_or_nearest(wrong[1].strip(chr(39)), allowed)}"
    return SpecError(f"{where}: {what[0].lower()}{what[1:]}")


def _or_nearest(name: str, allowed: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, allowed, n=1)
    return f"{name!r}; did you mean {close[0]!r}?" if close else repr(name)


def _fields(kind: Any, names: Sequence[str]) -> list[str]:
    return [
        field.encode_name for one in _at(kind, names) if isinstance(one, inspect.StructType) for field in one.fields
    ]


def _values(kind: Any, names: Sequence[str]) -> list[str]:
    """Of a field with a set of values; of a tag, those of all types that it tells apart."""
    found = [str(value) for one in _at(kind, names) if isinstance(one, inspect.LiteralType) for value in one.values]
    tagged = [one for one in _at(kind, names[:-1]) if isinstance(one, inspect.StructType) and one.tag_field in names]
    return found or [str(one.tag) for one in tagged]


def _at(kind: Any, names: Sequence[str]) -> list[inspect.Type]:
    """The types that stand at a path of field names; containers are looked into."""
    here = list(_flat(inspect.type_info(kind)))
    for name in names:
        fields = [field for one in here if isinstance(one, inspect.StructType) for field in one.fields]
        here = [inner for field in fields if field.encode_name == name for inner in _flat(field.type)]
    return here


def _flat(kind: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _flat(one)
    elif isinstance(kind, inspect.Metadata):
        yield from _flat(kind.type)
    elif isinstance(kind, inspect.VarTupleType):
        yield from _flat(kind.item_type)
    else:
        yield kind
