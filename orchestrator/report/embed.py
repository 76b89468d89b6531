"""A piece of a report inside a hand-written page, between two comments: the page never differs from the records."""

from __future__ import annotations

import re

from orchestrator.errors import SpecError


def embed(page: str, name: str, content: str) -> str:
    """`page` with what stands between `<!-- results:NAME -->` and `<!-- /results -->` replaced.

    Raises SpecError where the page has no such place.
    """
    place = re.compile(rf"(<!-- results:{re.escape(name)} -->\n).*?(<!-- /results -->)", re.DOTALL)
    if not place.search(page):
        raise SpecError(
            f"the page has no place for {name!r}",
            next_step=f"put <!-- results:{name} --> and <!-- /results --> on lines of their own",
        )
    return place.sub(lambda found: f"{found[1]}{content.rstrip()}\n{found[2]}", page)
