"""What must hold of a slice and of a request beyond their form: that it can be sent, and that the fields agree."""

from __future__ import annotations

from msgspec.structs import replace

from loadgen import target
from loadgen.contract import LoadSpec, Question, Request, Tls
from loadgen.decode import convert
from loadgen.errors import SpecError


def read_spec(document: object) -> LoadSpec:
    """A checked spec from plain objects. Raises SpecError that names the first wrong field."""
    return checked(convert(document, LoadSpec, "spec"))


def checked(spec: LoadSpec, field: str = "spec") -> LoadSpec:
    """The spec as it is sent. Raises SpecError that names the first wrong field."""
    _consistent(spec, field)
    return replace(
        spec,
        url=str(target.split(spec.url, f"{field}.url")),
        method=target.method(spec.method, f"{field}.method"),
        headers=_headers(spec.headers, f"{field}.headers"),
        paths=tuple(
            replace(path, path=target.target(path.path, f"{field}.paths[{at}].path"))
            for at, path in enumerate(spec.paths)
        ),
        tls=_tls(spec.tls, f"{field}.tls"),
    )


def checked_request(request: Request, field: str = "request") -> Request:
    """The request as it is sent. Raises SpecError that names the first wrong field."""
    return replace(
        request,
        url=str(target.split(request.url, f"{field}.url")),
        method=target.method(request.method, f"{field}.method"),
        headers=_headers(request.headers, f"{field}.headers"),
        tls=_tls(request.tls, f"{field}.tls"),
    )


def checked_question(question: Question, field: str) -> Question:
    """The same of a request with its right answer."""
    return replace(question, request=checked_request(question.request, f"{field}.request"))


def _headers(headers: tuple[tuple[str, str], ...], field: str) -> tuple[tuple[str, str], ...]:
    return tuple(target.header(name, value, f"{field}[{at}]") for at, (name, value) in enumerate(headers))


def _tls(tls: Tls, field: str) -> Tls:
    if tls.server_name is None:
        return tls
    return replace(tls, server_name=target.host_name(tls.server_name, f"{field}.server_name"))


def _consistent(spec: LoadSpec, field: str) -> None:
    if (spec.loop == "open") != (spec.rate is not None):
        raise SpecError(f"{field}.rate: an open loop needs a rate, and a closed loop takes none")
    if spec.processes > spec.connections:
        raise SpecError(f"{field}.processes: {spec.processes} processes cannot share {spec.connections} connections")
    if spec.engine != "builtin" and spec.loop != "closed":
        raise SpecError(f"{field}.engine: {spec.engine} has no open loop; use builtin")
