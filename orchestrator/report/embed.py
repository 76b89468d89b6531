"""A piece of a report inside a hand-written page, between two comments: the page never differs from the records."""

from __future__ import annotations

import re

from orchestrator.errors import SpecError, nearest

_BEGIN = re.compile(r"^<!-- results:(\S+) -->$", re.MULTILINE)
_END = "<!-- /results -->"


def embed(page: str, name: str, content: str) -> str:
    """`page` with what stands between `<!-- results:NAME -->` and `<!-- /results -->` replaced.

    Raises SpecError where the page has no such place, has it twice or without its end, or nothing is to be put there.
    """
    if not content.strip():
        raise SpecError(f"the run of {name!r} has no table yet", next_step=f"measure it: matrix run {name}")
    begin = _place(page, name)
    end = page.find(_END, begin)
    following = _BEGIN.search(page, begin)
    if end < 0 or (following and following.start() < end):
        raise SpecError(f"the place for {name!r} has no end", next_step=f"put {_END} on a line of its own after it")
    return f"{page[:begin]}{content.rstrip()}\n{page[end:]}"


def _place(page: str, name: str) -> int:
    """Where the content begins: after the comment's line."""
    places = [(found[1], found.end() + 1) for found in _BEGIN.finditer(page)]
    ends = [end for place, end in places if place == name]
    if not ends:
        names = [place for place, _ in places]
        has = f"; it has places for {', '.join(names)}" if names else ""
        raise SpecError(
            f"the page has no place for {name!r}{has}",
            nearest=nearest(name, names),
            next_step=f"put <!-- results:{name} --> and {_END} on lines of their own",
        )
    if len(ends) > 1:
        raise SpecError(f"the page has {len(ends)} places for {name!r}", next_step="leave one of them")
    return ends[0]
