"""What pydantic cannot see: names that must exist elsewhere in the file, and placeholders of commands.

Every check yields `Mistake`s with the path of the field, so that `loading` can add file and line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from orchestrator.errors import nearest
from orchestrator.spec.models import Axes, Filter, Matrix, Suite
from orchestrator.spec.resolved import PLACEHOLDERS, Variant, catalogue, placeholders, tuned
from orchestrator.spec.yaml_text import FieldPath


@dataclass(frozen=True)
class Mistake:
    path: FieldPath
    what: str
    nearest: str = ""
    next_step: str = ""


def matches(pattern: str, variant: Variant) -> bool:
    """Whether `pattern` (all, a server, server/variant, or either with `*`) names `variant`.

    An extra variant is named by its own name or a pattern of it alone, not by its server's.
    """
    if "/" not in pattern:
        return not variant.extra and (pattern == "all" or fnmatchcase(variant.server, pattern))
    return fnmatchcase(variant.name, pattern)


def mistakes(matrix: Matrix) -> Iterator[Mistake]:
    """All mistakes of a matrix that is well-formed."""
    variants = catalogue(matrix)
    for name, flavour in matrix.flavours.items():
        yield from _text_mistakes(("flavours", name, "base"), flavour.base, {"python": "version"})
    for variant in variants:
        yield from _variant_mistakes(matrix, variant)
    for name, suite in matrix.suites.items():
        yield from _suite_mistakes(matrix, variants, ("suites", name), suite)


def _variant_mistakes(matrix: Matrix, variant: Variant) -> Iterator[Mistake]:
    path: FieldPath = ("servers", variant.server, "variants", variant.variant)
    if not variant.protocol:
        yield Mistake(
            path, "neither the variant nor its server says which protocol it speaks", "", "add protocol: asgi"
        )
    if not variant.install:
        yield Mistake(path, "nothing to install", "", "add install: [name==version] to the variant or its server")
    for flavour in variant.system:
        if flavour not in matrix.flavours:
            yield _unknown((*_where(matrix, variant, "system"), flavour), "flavour", flavour, matrix.flavours)
    for requirement in variant.install:
        if "==" not in requirement:
            where = _where(matrix, variant, "install")
            yield Mistake(where, f"{requirement!r} is not pinned", "", f"write {requirement}==VERSION")
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
        yield Mistake(path, f"{text!r} cannot be read: {error}", "", "close braces and quotes; {{ is a brace")
        return
    for name in sorted(found - valid.keys()):
        yield _unknown(path, "placeholder", name, valid)


def _command_mistakes(matrix: Matrix, variant: Variant) -> Iterator[Mistake]:
    run = _where(matrix, variant, "run")
    if not variant.run:
        yield Mistake(run[:-1], "there is no launch command", "", "add run: NAME --bind {host}:{port} {app}")
        return
    texts = {"run": variant.run, "options": variant.options, "tls": variant.tls}
    found = [mistake for field, text in texts.items()
             for mistake in _text_mistakes(_where(matrix, variant, field), text, PLACEHOLDERS)]  # fmt: skip
    if variant.shutdown:
        path = (*_where(matrix, variant, "shutdown"), "options")
        found += _text_mistakes(path, variant.shutdown.options, PLACEHOLDERS | {"grace": "grace period"})
    yield from found
    if found:
        return
    used = frozenset().union(*map(placeholders, (*texts.values(), tuned(variant, 1).options)))
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


def _suite_mistakes(matrix: Matrix, variants: tuple[Variant, ...], path: FieldPath, suite: Suite) -> Iterator[Mistake]:
    axes_mistakes = list(_axes_mistakes(matrix, variants, (*path, "axes"), suite.axes))
    if suite.probe != "load" and any(True in axes.tls for axes in (suite.axes, *suite.include)):
        yield Mistake((*path, "probe"), f"{suite.probe} is measured over plain HTTP alone", "", "leave tls away")
    for at, axes in enumerate(suite.include):
        axes_mistakes += _axes_mistakes(matrix, variants, (*path, "include", at), axes)
    yield from axes_mistakes or _baseline_mistakes(variants, (*path, "baseline"), suite)
    for at, rule in enumerate(suite.exclude):
        yield from _filter_mistakes(matrix, variants, (*path, "exclude", at), rule)


def _baseline_mistakes(variants: tuple[Variant, ...], path: FieldPath, suite: Suite) -> Iterator[Mistake]:
    baseline = next((variant for variant in variants if variant.name == suite.baseline), None)
    if baseline is None:
        of_server = next((variant.name for variant in variants if variant.server == suite.baseline), "")
        if of_server:
            yield Mistake(path, "a baseline is one variant, not a whole server", of_server, "")
        else:
            yield _unknown(path, "variant", suite.baseline, [variant.name for variant in variants])
    elif not any(matches(pattern, baseline) for axes in (suite.axes, *suite.include) for pattern in axes.server):
        yield Mistake(path, f"the suite does not measure its baseline {suite.baseline}", "", "add it to axes.server")


def _axes_mistakes(matrix: Matrix, variants: tuple[Variant, ...], path: FieldPath, axes: Axes) -> Iterator[Mistake]:
    for axis, given in axes:
        counted: Counter[object] = Counter(given)
        value, times = counted.most_common(1)[0]
        if times > 1:
            yield Mistake((*path, axis), f"{value!r} stands in it twice, so its cells would too", "", "name it once")
    for at, pattern in enumerate(axes.server):
        yield from _server_mistakes((*path, "server", at), pattern, variants)
    named: tuple[tuple[str, tuple[str, ...], Iterable[str]], ...] = (
        ("flavour", axes.flavour, matrix.flavours),
        ("app", axes.app, [*matrix.apps, "all"]),
        ("workload", axes.workload, matrix.workloads),
    )
    for axis, values, valid in named:
        for at, value in enumerate(values):
            if value not in valid:
                yield _unknown((*path, axis, at), axis, value, valid)


def _filter_mistakes(matrix: Matrix, variants: tuple[Variant, ...], path: FieldPath, rule: Filter) -> Iterator[Mistake]:
    if rule.server is not None:
        yield from _server_mistakes((*path, "server"), rule.server, variants)
    named = (
        ("flavour", rule.flavour, matrix.flavours),
        ("app", rule.app, matrix.apps),
        ("workload", rule.workload, matrix.workloads),
    )
    for axis, value, valid in named:
        if value is not None and value not in valid:
            yield _unknown((*path, axis), axis, value, valid)
    if len(rule.model_fields_set) == 1:
        yield Mistake(path, "an exclude without any axis would drop every cell", "", "name a server or another axis")


def _server_mistakes(path: FieldPath, pattern: str, variants: tuple[Variant, ...]) -> Iterator[Mistake]:
    if not any(matches(pattern, variant) for variant in variants):
        valid = [variant.name for variant in variants] + [variant.server for variant in variants]
        yield _unknown(path, "server", pattern, dict.fromkeys(valid))


def _unknown(path: FieldPath, kind: str, name: str, valid: Iterable[str]) -> Mistake:
    names = list(valid)
    shown = ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
    return Mistake(path, f"no {kind} is called {name!r}", nearest(name, names), f"one of: {shown}")
