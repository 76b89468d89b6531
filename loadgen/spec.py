"""What one slice of load is: the JSON that comes in, checked, as frozen data."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loadgen import target
from loadgen.errors import SpecError

MAX_TIMEOUT_S = 60.0  # the end of the latency histogram's range

Json = dict[str, Any]
Check = Callable[[str, Any], Any]


@dataclass(frozen=True)
class Expect:
    """What a right answer is. `body` None: any body."""

    status: int = 200
    body: bytes | None = None


@dataclass(frozen=True)
class Path:
    """One of several targets asked in turn, e.g. `/items/1?q=2`; `expect` None: the spec's own."""

    path: str
    expect: Expect | None = None


@dataclass(frozen=True)
class Tls:
    """`ca`: PEM file to verify against (None: the system's); `server_name`: for SNI and verification."""

    ca: str | None = None
    verify: bool = True
    server_name: str | None = None


@dataclass(frozen=True)
class LoadSpec:
    """One slice. Seconds for times, requests per second for `rate` (open loop only)."""

    url: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    paths: tuple[Path, ...] = ()
    connections: int = 1
    duration_s: float = 1.0
    warmup_s: float = 0.0
    loop: str = "closed"
    rate: float | None = None
    arrivals: str = "constant"
    seed: int = 0
    expect: Expect = Expect()
    timeout_s: float = 10.0
    tls: Tls = Tls()
    processes: int = 1
    cpus: tuple[int, ...] = ()
    engine: str = "builtin"
    watch_pid: int | None = None

    @classmethod
    def from_json(cls, doc: Any) -> LoadSpec:
        """The checked spec. Raises SpecError that names the first wrong field."""
        spec: LoadSpec = record(cls, FIELDS)("spec", doc)
        _consistent(spec)
        return spec

    def to_json(self) -> Json:
        """The document that `from_json` takes back unchanged."""
        doc: Json = _plain(self)
        return doc


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def number(low: float, high: float = float("inf"), kind: type = float) -> Check:
    def check(field: str, value: Any) -> Any:
        wanted = (int,) if kind is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, wanted) or not low <= value <= high:
            raise SpecError(f"{field}: {value!r} is not {kind.__name__} between {low:g} and {high:g}")
        return kind(value)

    return check


def _sent(check: Callable[[str, str], Any]) -> Check:
    """Of a text that goes over the wire: `check` gives it as it is sent, and refuses what cannot be."""

    def checked(field: str, value: Any) -> Any:
        if not isinstance(value, str):
            raise SpecError(f"{field}: {value!r:.60} is not a text")
        return check(value, field)

    return checked


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str) or any(c in value for c in "\r\n\0"):
        raise SpecError(f"{field}: {value!r} is not a text of one line")
    return value


def flag(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SpecError(f"{field}: {value!r} is neither true nor false")
    return value


def _base64(field: str, value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise SpecError(f"{field}: not base64: {value!r:.60}") from None


def _one_of(*names: str) -> Check:
    def check(field: str, value: Any) -> Any:
        if value not in names:
            close = difflib.get_close_matches(str(value), names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise SpecError(f"{field}: {value!r} is none of {', '.join(names)}{hint}")
        return value

    return check


def _optional(check: Check) -> Check:
    return lambda field, value: None if value is None else check(field, value)


def _list(check: Check) -> Check:
    def checked(field: str, value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise SpecError(f"{field}: {value!r:.60} is not a list")
        return tuple(check(f"{field}[{i}]", item) for i, item in enumerate(value))

    return checked


def _header(field: str, value: Any) -> tuple[str, str]:
    if not isinstance(value, (list, tuple)) or len(value) != 2 or not all(isinstance(part, str) for part in value):
        raise SpecError(f"{field}: {value!r:.60} is not [name, value]")
    return target.header(value[0], value[1], field)


def record(cls: type, checks: Mapping[str, Check]) -> Check:
    def check(field: str, value: Any) -> Any:
        if not isinstance(value, dict):
            raise SpecError(f"{field}: {value!r:.60} is not an object")
        for name in value:
            _one_of(*checks)(f"{field}: field", name)
        try:
            return cls(**{name: checks[name](f"{field}.{name}", item) for name, item in value.items()})
        except TypeError as error:
            raise SpecError(f"{field}: {error}") from None

    return check


EXPECT = record(Expect, {"status": number(100, 599, int), "body": _optional(_base64)})
FIELDS: dict[str, Check] = {
    "url": _sent(lambda value, field: str(target.split(value, field))),
    "method": _sent(target.method),
    "headers": _list(_header),
    "body": _base64,
    "paths": _list(record(Path, {"path": _sent(target.target), "expect": _optional(EXPECT)})),
    "connections": number(1, 100_000, int),
    "duration_s": number(0.01, 86_400),
    "warmup_s": number(0, 3_600),
    "loop": _one_of("closed", "open"),
    "rate": _optional(number(0.001, 10_000_000)),
    "arrivals": _one_of("constant", "poisson"),
    "seed": number(0, 2**63, int),
    "expect": EXPECT,
    "timeout_s": number(0.001, MAX_TIMEOUT_S),
    "tls": record(Tls, {"ca": _optional(_text), "verify": flag, "server_name": _optional(_sent(target.host_name))}),
    "processes": number(1, 1_024, int),
    "cpus": _list(number(0, 65_535, int)),
    "engine": _one_of("builtin", "wrk", "h2load"),
    "watch_pid": _optional(number(1, kind=int)),
}


def _consistent(spec: LoadSpec) -> None:
    if (spec.loop == "open") != (spec.rate is not None):
        raise SpecError("spec.rate: an open loop needs a rate, and a closed loop takes none")
    if spec.processes > spec.connections:
        raise SpecError(f"spec.processes: {spec.processes} processes cannot share {spec.connections} connections")
    if spec.engine != "builtin" and spec.loop != "closed":
        raise SpecError(f"spec.engine: {spec.engine} has no open loop; use builtin")
