"""Many objects of one form as columns: each field's name once, with the list of its values.

An object of columns stands for objects; a list for the values of one field, of which a single one holds for all rows.
A field that has its usual value in every row is left out. Whatever the rows are, `rows(columns(…), …)` gives them back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Json = Any
"""What a JSON document may hold."""
UNUSUAL = object()
"""In the place of a usual value: there is none."""


def columns(rows: Sequence[Json], usual: Json = UNUSUAL) -> Json:
    """The columns of these rows. `usual`: what a row mostly holds, which need not be written."""
    names = _names(rows)
    wont = usual if isinstance(usual, Mapping) else {}
    if names and wont.keys() <= set(names):
        found = {name: [row[name] for row in rows] for name in names}
        return {
            name: columns(values, wont.get(name, UNUSUAL))
            for name, values in found.items()
            if name not in wont or not _all(values, wont[name])
        }
    return [rows[0]] if rows and _all(rows, rows[0]) else list(rows)


def rows(packed: Json, count: int, usual: Json = UNUSUAL) -> list[Json]:
    """The rows, so many, that these columns stand for. Raises ValueError where a column has not one value for each."""
    if isinstance(packed, Mapping):
        wont = usual if isinstance(usual, Mapping) else {}
        found = {name: rows(values, count, wont.get(name, UNUSUAL)) for name, values in packed.items()}
        found |= {name: [value] * count for name, value in wont.items() if name not in packed}
        return [{name: values[at] for name, values in found.items()} for at in range(count)]
    if not isinstance(packed, list) or len(packed) not in (1, count):
        raise ValueError(f"a column of {count} rows holds {str(packed)[:80]}")
    return list(packed) * count if len(packed) != count else list(packed)


def _names(rows: Sequence[Json]) -> list[str]:
    """The fields that all rows have; none where they differ, or are no objects."""
    first = list(rows[0]) if rows and isinstance(rows[0], Mapping) else []
    return first if all(isinstance(row, Mapping) and row.keys() == set(first) for row in rows) else []


def _all(values: Sequence[Json], value: Json) -> bool:
    """Whether each is written as this one is: 1, 1.0 and true are different."""
    text = json.dumps(value, sort_keys=True)
    return all(json.dumps(one, sort_keys=True) == text for one in values)
