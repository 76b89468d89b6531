"""YAML text -> plain data plus the line of every field, within limits that a hostile file cannot pass.

PyYAML parses; this module only walks its node graph, so that each value keeps its line, a key given twice
is an error, and neither an alias loop nor a "billion laughs" file can use up memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import yaml

from orchestrator.errors import Place, SpecError

MAX_BYTES = 1 << 20
MAX_NODES = 50_000
MAX_DEPTH = 40

FieldPath = tuple[str | int, ...]


@dataclass(frozen=True)
class YamlText:
    """`data` is plain Python; `lines` maps a field path such as ("servers", "uvicorn", "run") to its 1-based line."""

    file: str
    data: object
    lines: dict[FieldPath, int] = field(repr=False)

    def place(self, path: FieldPath) -> Place:
        """The place of `path`, or of its nearest parent that the file holds."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return Place(self.file, self.lines[path[:end]], dotted(path))
        return Place(self.file, None, dotted(path))


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
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        what = ": ".join(part for part in (error.context, error.problem) if part)
        raise SpecError(f"not valid YAML: {what}", place=Place(file, line)) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SpecError(f"not valid YAML: {error}", place=Place(file)) from error
    if root is None:
        raise SpecError("the file is empty", place=Place(file), next_step="copy the matrix.yaml of the project")
    walker = _Walker(file)
    return YamlText(file, walker.value(root, (), ()), walker.lines)


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
            raise self._error(f"{what}, aliases counted where they are used", line, path)
        above = (*above, id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, above)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, at), above) for at, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: FieldPath, above: tuple[int, ...]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error("a key must be a plain name", line, path)
            key = str(key_node.value)
            if key in found:
                raise self._error(f"the key {key!r} is given twice", line, (*path, key))
            self.lines[(*path, key)] = line
            found[key] = self.value(value_node, (*path, key), above)
        return found

    def _scalar(self, node: yaml.Node, path: FieldPath) -> object:
        try:
            return self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            what = getattr(error, "problem", None) or error
            raise self._error(f"not a value that YAML knows: {what}", node.start_mark.line + 1, path) from error

    def _error(self, what: str, line: int, path: FieldPath) -> SpecError:
        return SpecError(what, place=Place(self._file, line, dotted(path)))
