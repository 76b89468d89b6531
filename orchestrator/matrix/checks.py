"""What pydantic cannot see: names that must exist elsewhere in the file, and placeholders of commands.

Every check yields `Mistake`s with the path of the field, so that `loading` can add file and line.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping

from orchestrator.matrix.command import shell_mistake
from orchestrator.matrix.mistake import Mistake, unknown
from orchestrator.matrix.models import Matrix
from orchestrator.matrix.requirement import pinned_versions
from orchestrator.matrix.resolved import PLACEHOLDERS, Variant, catalogue, placeholders, tuned
from orchestrator.matrix.suite_checks import suite_mistakes
from orchestrator.matrix.yaml_text import FieldPath


def mistakes(matrix: Matrix) -> Iterator[Mistake]:
    """All mistakes of a matrix that is well-formed."""
    variants = catalogue(matrix)
    for name, flavour in matrix.flavours.items():
        yield from _text_mistakes(("flavours", name, "base"), flavour.base, {"python": "version"})
    for name, workload in matrix.workloads.items():
        yield from _path_mistakes(("workloads", name, "path"), workload.path)
    for variant in variants:
        yield from _variant_mistakes(matrix, variant)
    for name, suite in matrix.suites.items():
        yield from suite_mistakes(matrix, variants, ("suites", name), suite)


def _path_mistakes(path: FieldPath, text: str) -> Iterator[Mistake]:
    """What no request can ask for. The load generator percent-encodes the rest of what a URL cannot hold."""
    if wrong := next((sign for sign in text if unicodedata.category(sign) == "Cc"), ""):
        yield Mistake(path, f"{text!r} holds a control character, {wrong!r}", "", f"write %{ord(wrong):02X} for it")
    if "#" in text:
        yield Mistake(path, f"{text!r}: what follows # is never sent to a server", "", "leave it out, or write %23")


def _variant_mistakes(matrix: Matrix, variant: Variant) -> Iterator[Mistake]:
    path: FieldPath = ("servers", variant.server, "variants", variant.variant)
    if not variant.protocol:
        yield Mistake(
            path, "neither the variant nor its server says which protocol it speaks", "", "add protocol: asgi"
        )
    if not variant.install:
        yield Mistake(path, "nothing to install", "", "add install: [name==version] to the variant or its server")
    elif variant.package not in (names := pinned_versions(variant.install)):
        yield unknown(_where(matrix, variant, "package"), "distribution of its `install`", variant.package, names)
    for flavour in variant.system:
        if flavour not in matrix.flavours:
            yield unknown((*_where(matrix, variant, "system"), flavour), "flavour", flavour, matrix.flavours)
    yield from _command_mistakes(matrix, variant)


def _where(matrix: Matrix, variant: Variant, field: str) -> FieldPath:
    """Where a field of a variant stands in the file: in the variant's own entry, or in its server's."""
    server: FieldPath = ("servers", variant.server)
    own = matrix.servers[variant.server].variants[variant.variant].model_fields_set
    return (*server, "variants", variant.variant, field) if field in own else (*server, field)


def _text_mistakes(path: FieldPath, text: str, valid: Mapping[str, str]) -> Iterator[Mistake]:
    """Mistakes in a text with placeholders."""
    try:
        found = placeholders(text)
    except ValueError as error:
        yield Mistake(
            path,
            f"{text!r} cannot be read: {error}",
            "",
            "close braces and quotes, and let no backslash stand last; {{ is a brace",
        )
        return
    for name in sorted(found - valid.keys()):
        yield unknown(path, "placeholder", name, valid)


def _command_mistakes(matrix: Matrix, variant: Variant) -> Iterator[Mistake]:
    run = _where(matrix, variant, "run")
    if not variant.run:
        yield Mistake(run[:-1], "there is no launch command", "", "add run: NAME --bind {host}:{port} {app}")
        return
    found = [mistake for part in _parts(matrix, variant) for mistake in _part_mistakes(*part)]
    yield from found or _whole_mistakes(run, variant)


def _parts(matrix: Matrix, variant: Variant) -> Iterator[tuple[FieldPath, str, Mapping[str, str]]]:
    """Every text that a command is put together from: where it stands, and the placeholders that it may hold."""
    yield _where(matrix, variant, "run"), variant.run, PLACEHOLDERS
    yield _where(matrix, variant, "options"), variant.options, PLACEHOLDERS
    yield _where(matrix, variant, "tls"), variant.tls, PLACEHOLDERS
    yield _where(matrix, variant, "timeout"), variant.timeout, PLACEHOLDERS | {"timeout": "seconds"}
    if variant.shutdown:
        path = (*_where(matrix, variant, "shutdown"), "options")
        yield path, variant.shutdown.options, PLACEHOLDERS | {"grace": "grace period"}


def _part_mistakes(path: FieldPath, text: str, valid: Mapping[str, str]) -> Iterator[Mistake]:
    if for_shell := shell_mistake(text, begins=path[-1] == "run"):
        word, step = for_shell
        yield Mistake(path, f"{word!r} means something to a shell, and no shell runs this command", "", step)
    else:
        yield from _text_mistakes(path, text, valid)


def _whole_mistakes(run: FieldPath, variant: Variant) -> Iterator[Mistake]:
    """Mistakes of a command whose parts have none."""
    whole = tuned(variant, 1)
    used = frozenset().union(*map(placeholders, (variant.run, whole.options, variant.tls)))
    if used.isdisjoint(("app", "module", "file")):
        yield Mistake(
            run, f"the command of {variant.name} names no application, and each of its cells is about one", "",
            "put {app}, {module} or {file} into run or options",
        )  # fmt: skip
    for needed, why in _needed(variant):
        if needed not in used:
            yield Mistake(
                run, f"the command of {variant.name} lacks the placeholder {{{needed}}}: {why}", "",
                f"put {{{needed}}} into run or options",
            )  # fmt: skip


def _needed(variant: Variant) -> Iterator[tuple[str, str]]:
    yield "port", "the load generator must know where to go"
    yield "host", "the server must listen where the load generator is"
    for feature in ("workers", "threads"):
        if feature in variant.supports:
            yield feature, f"it supports {feature}"
    if "tls" in variant.supports:
        yield from (("key", "it supports tls"), ("cert", "it supports tls"))
    if tuned(variant, 1).options or variant.tls:
        yield "options", "it has options"
