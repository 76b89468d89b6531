"""Which CPUs the server gets and which the load generator: never the same where there are two."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.engines.protocol import Placement
from orchestrator.errors import Place, SpecError
from orchestrator.matrix.models import Cpus


def place(cpus: Cpus, available: Sequence[int]) -> Placement:
    """`auto` gives the last CPU to the load generator and the others to the server.

    With four or more CPUs the first one is left to the kernel and the orchestrator.
    Raises SpecError where a CPU is named that is not available, or the two sets overlap.
    """
    client = _listed(cpus.client, "client", available) or (available[-1],)
    rest = tuple(cpu for cpu in available if cpu not in client)
    if len(rest) >= 3 and cpus.client == "auto":
        rest = rest[1:]
    server = _listed(cpus.server, "server", available) or rest or tuple(available)
    shared = bool(set(server) & set(client))
    if shared and len(available) > 1:
        raise SpecError(
            "server and load generator may not share a CPU", place=Place(field="cpus"), next_step="use disjoint lists"
        )
    return Placement(tuple(server), tuple(client), shared)


def _listed(text: str, side: str, available: Sequence[int]) -> tuple[int, ...]:
    """`0,2-3` -> (0, 2, 3); `auto` -> ()."""
    if text == "auto":
        return ()
    field = Place(field=f"cpus.{side}")
    try:
        found = tuple(dict.fromkeys(cpu for part in text.split(",") for cpu in _range(part)))
    except ValueError as error:
        raise SpecError(f"{text!r} is no list of CPUs", place=field, next_step="write it like 0,2-3") from error
    missing = [cpu for cpu in found if cpu not in available]
    if missing:
        raise SpecError(f"there is no CPU {missing[0]}", place=field, next_step=f"available: {list(available)}")
    return found


def _range(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)
