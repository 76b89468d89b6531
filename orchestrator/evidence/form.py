"""The written form of a record: evidence in columns, with what follows from it in a part of its own.

`written` makes of a record's document what its file holds, and `read` the document again, out of this form or an older
one. What was measured is written whole: no number is rounded, and a column is left out only where it has its usual
value in every slice, or where it follows from others exactly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator.evidence import histograms
from orchestrator.evidence.columns import columns, rows

Json = Any
Object = dict[str, Json]
FORM = "appserver-matrix/record/2"
OLD_FORM = "appserver-matrix/record/1"
JUDGEMENT = ("outcome", "reason", "summary", "verdicts", "judged")
"""Fields that follow from the others, and are the only ones that are ever replaced: a part of their own in the file."""

ERRORS = ("refused", "reset", "closed_early", "timeout", "status", "wrong_body", "protocol")
USUAL_LOAD: Mapping[str, Json] = {
    "schema": "loadgen/1",
    "latency": {"unit": "us"},
    "service": None,
    "errors": dict.fromkeys(ERRORS, 0),
    "first_error": None,
    "connections": {"resent": 0, "reconnects": 0},
    "tls": None,
    "kernel": {"retransmits": 0, "passive_opens": 0},
    "late": None,
    "client_late": False,
}
USUAL_SLICE: Mapping[str, Json] = {"rate": None, "load": USUAL_LOAD}
USUAL_ROUND: Mapping[str, Json] = {
    "mismatches": [], "unverified": [], "keepalive": True, "access_log": False, "failure": None,
}  # fmt: skip

FOLLOWS: Mapping[tuple[str, str], Callable[[Object], Json]] = {
    ("", "rps"): lambda load: load["requests"] / load["elapsed_s"],
    ("latency", "count"): lambda load: load["requests"],
    ("connections", "per_request"): lambda load: load["connections"]["reconnects"] / load["requests"],
}
"""Figures of a slice, by part and name, that mostly follow from others, as the load generator derives them."""


def written(document: Mapping[str, Json]) -> Object:
    """What a record's file holds."""
    made = {name: value for name, value in document.items() if name not in (*JUDGEMENT, "rounds")}
    made |= {"schema": FORM, **_in_columns(document.get("rounds", []))}
    return made | {"judgement": {name: document[name] for name in JUDGEMENT if name in document}}


def read(held: Mapping[str, Json]) -> Object:
    """The record's document. Raises ValueError, KeyError or TypeError where the file does not hold what it should."""
    if held.get("schema") == OLD_FORM:
        return {**held, "schema": FORM}
    if held.get("schema") != FORM:
        return dict(held)
    document = {name: value for name, value in held.items() if name not in ("judgement", "slices", "histograms")}
    document |= held["judgement"]
    return document | {"rounds": _rounds(held)} if "rounds" in held else document


def as_text(made: Mapping[str, Json]) -> str:
    """JSON with a line for each field, and one for each column of slices."""
    inner = (f"{json.dumps(name)}:{_line(name, value)}" for name, value in made.items())
    return "{\n" + ",\n".join(inner) + "\n}\n"


def _line(name: str, value: Json) -> str:
    if name != "slices":
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "{\n" + ",\n".join(f" {json.dumps(own)}:{_line(own, one)}" for own, one in value.items()) + "\n}"


def _in_columns(rounds: Sequence[Json]) -> Object:
    if not rounds:
        return {}
    slices = [{"round": one["number"], **_copied(slice_)} for one in rounds for slice_ in one["slices"]]
    bare = [{name: value for name, value in one.items() if name != "slices"} for one in rounds]
    made: Object = {"rounds": {"count": len(bare), **columns(bare, USUAL_ROUND)}}
    if slices:
        packed = _packed(slices)
        made["slices"] = {"count": len(slices), **_followed(slices)}
        made |= {"histograms": packed} if packed else {}
    return made


def _copied(slice_: Mapping[str, Json]) -> Object:
    """A slice whose figures may be taken out."""
    load = {name: dict(part) if isinstance(part, dict) else part for name, part in slice_["load"].items()}
    return {**slice_, "load": load}


def _latencies(slices: Sequence[Json]) -> list[Object]:
    """All that hold a histogram, in the order in which these are packed."""
    return [found for name in ("latency", "service") for one in slices if (found := one["load"].get(name))]


def _packed(slices: Sequence[Json]) -> str:
    """The histograms of all slices, taken out of them; nothing where one of them is none."""
    found = _latencies(slices)
    try:
        packed = histograms.pack(tuple(latency["histogram"] for latency in found))
    except Exception:  # the library raises whatever comes: evidence is kept as it is
        return ""
    for latency in found:
        del latency["histogram"]
    return packed


def _followed(slices: Sequence[Json]) -> Object:
    """The columns of slices without those that follow from others."""
    loads = [one["load"] for one in slices]
    for (part, name), of in FOLLOWS.items():
        if all(_same(load, part, name, of) for load in loads):
            for load in loads:
                del (load[part] if part else load)[name]
    made: Object = columns(slices, USUAL_SLICE)
    return made


def _same(load: Object, part: str, name: str, of: Callable[[Object], Json]) -> bool:
    try:
        return bool(json.dumps((load[part] if part else load)[name]) == json.dumps(of(load)))
    except (KeyError, TypeError, ZeroDivisionError):
        return False


def _rounds(held: Mapping[str, Json]) -> list[Object]:
    bare, slices = _counted(held["rounds"], USUAL_ROUND), _slices(held)
    return [
        {**one, "slices": [_without(slice_, "round") for slice_ in slices if slice_["round"] == one["number"]]}
        for one in bare
    ]


def _slices(held: Mapping[str, Json]) -> list[Object]:
    slices = _counted(held["slices"], USUAL_SLICE) if "slices" in held else []
    found = _latencies(slices) if "histograms" in held else []
    for latency, text in zip(found, histograms.unpack(held["histograms"], len(found)) if found else [], strict=True):
        latency["histogram"] = text
    for load in (one["load"] for one in slices):
        for (part, name), of in FOLLOWS.items():
            own = load[part] if part else load
            if name not in own:
                own[name] = of(load)
    return slices


def _counted(packed: Mapping[str, Json], usual: Mapping[str, Json]) -> list[Object]:
    return rows(_without(packed, "count"), packed["count"], usual)


def _without(document: Mapping[str, Json], name: str) -> Object:
    return {own: value for own, value in document.items() if own != name}
