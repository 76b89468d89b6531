"""YAML text -> plain data plus the line of every field, within limits that a hostile file cannot pass.

PyYAML parses; this module only walks its node graph, so that each value keeps its line, a key given twice
is an error, and neither an alias loop nor a "billion laughs" file can use up memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from orchestrator.errors import Place, SpecError

MAX_BYTES = 1 << 17
MAX_NODES = 10_000
MAX_DEPTH = 40
MAX_INT = 1 << 53

_TAG = "tag:yaml.org,2002:"
_TEXT = {f"{_TAG}{name}" for name in ("str", "timestamp", "value")}
_PLAIN = {f"{_TAG}{name}" for name in ("null", "bool", "int", "float")}

FieldPath = tuple[str | int, ...]


@dataclass(frozen=True)
class YamlText:
    """`data` is plain Python; `lines` maps a field path such as ("servers", "uvicorn", "run") to its 1-based line."""

    file: str
    data: object
    lines: dict[FieldPath, int] = field(repr=False)

    def place(self, path: FieldPath) -> Place:
        """The place of `path`, or of its nearest parent that the file holds.

        An index that the file does not hold is left out: `app: flask` is a list of one only to the models.
        """
        while path and path not in self.lines and isinstance(path[-1], int):
            path = path[:-1]
        line = next((self.lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self.lines), None)
        return Place(self.file, line, dotted(path))


def dotted(path: FieldPath) -> str:
    """`("axes", "server", 0)` reads `axes.server[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def parse_yaml(text: str, file: str) -> YamlText:
    """Parse one YAML document. Raises SpecError with file and line for whatever is wrong with it."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise SpecError(f"the file is larger than {MAX_BYTES} bytes", place=Place(file))
    root = _compose(text, file)
    if root is None:
        raise SpecError("the file is empty", place=Place(file, 1), next_step="copy the matrix.yaml of the project")
    walker = _Walker(file)
    return YamlText(file, walker.value(root, (), ()), walker.lines)


class _Loader(yaml.SafeLoader):
    """Refuses deep nesting while it scans: the scanner's time grows with the square of the open brackets."""

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:
        if self.flow_level >= MAX_DEPTH:
            raise yaml.scanner.ScannerError(None, None, f"nested more than {MAX_DEPTH} deep", self.get_mark())
        super().fetch_flow_collection_start(TokenClass)


def _compose(text: str, file: str) -> yaml.Node | None:
    line = 1
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            return node if isinstance(node, yaml.Node) else None
        finally:
            line = loader.line + 1
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ": ".join(part for part in (error.context, error.problem) if part)
        raise SpecError(f"not valid YAML: {what}", place=Place(file, mark.line + 1 if mark else line)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"the character U+{ord(text[error.position]):04X} is not allowed in it"
        raise SpecError(f"not valid YAML: {what}", place=Place(file, line)) from error
    except RecursionError as error:
        raise SpecError(f"nested more than {MAX_DEPTH} deep", place=Place(file, line)) from error
    except ValueError as error:
        raise SpecError(
            "not valid YAML: an escape or a number in it has no meaning", place=Place(file, line)
        ) from error


class _Walker:
    """Turns PyYAML nodes into data, counting them: an alias counts each time that it is used."""

    def __init__(self, file: str) -> None:
        self.lines: dict[FieldPath, int] = {}
        self._file = file
        self._left = MAX_NODES
        self._scalars = yaml.SafeLoader("")

    def value(self, node: yaml.Node, path: FieldPath, above: tuple[int, ...]) -> object:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        self._left -= 1
        if id(node) in above:
            raise self._error("an alias points back at what holds it", line, path)
        if self._left < 0 or len(above) >= MAX_DEPTH:
            what = f"more than {MAX_NODES} values" if self._left < 0 else f"nested more than {MAX_DEPTH} deep"
            raise self._error(f"{what}, aliases counted where they are used", line, path[:2])
        above = (*above, id(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node.tag not in (f"{_TAG}map", f"{_TAG}seq"):
            raise self._error(f"the tag {node.tag.replace(_TAG, '!!')[:60]} has no meaning here", line, path)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, above)
        return [self.value(item, (*path, at), above) for at, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: FieldPath, above: tuple[int, ...]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error("a key must be a plain name", line, path)
            key = self._text(key_node, path)
            if key == "<<":
                raise self._error("merge keys (<<) are not read: write the fields out", line, path)
            if key in found:
                first = self.lines[(*path, key)]
                raise self._error(f"the key {key!r} is given twice, first in line {first}", line, (*path, key))
            self.lines[(*path, key)] = line
            found[key] = self.value(value_node, (*path, key), above)
        return found

    def _scalar(self, node: yaml.ScalarNode, path: FieldPath) -> object:
        """Text, number, true, false or null. What YAML takes for a date is text here."""
        line = node.start_mark.line + 1
        if node.tag in _TEXT:
            return self._text(node, path)
        if node.tag not in _PLAIN:
            raise self._error(f"the tag {node.tag.replace(_TAG, '!!')[:60]} has no meaning here", line, path)
        try:
            value = self._scalars.construct_object(node)
        except (yaml.YAMLError, LookupError, ValueError, OverflowError) as error:
            raise self._error(f"{node.value[:40]!r} is not a value that YAML knows", line, path) from error
        if isinstance(value, int | float) and not abs(value) <= MAX_INT:  # NaN compares false, too
            raise self._error(f"{node.value[:40]!r} is too large, or no number", line, path)
        return value

    def _text(self, node: yaml.ScalarNode, path: FieldPath) -> str:
        """Half of a surrogate pair, which YAML's escapes can make, is no character."""
        text = str(node.value)
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            raise self._error("half of a surrogate pair is no character", node.start_mark.line + 1, path)
        return text

    def _error(self, what: str, line: int, path: FieldPath) -> SpecError:
        return SpecError(what, place=Place(self._file, line, dotted(path)))
