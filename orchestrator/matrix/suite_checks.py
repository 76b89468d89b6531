"""What pydantic cannot see of a suite: names that must exist elsewhere, and settings that contradict each other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase

from orchestrator.matrix.axes import AXIS, OWN, Axis
from orchestrator.matrix.mistake import Mistake, shown, unknown
from orchestrator.matrix.models import Axes, Filter, Matrix, Suite, given
from orchestrator.matrix.probe_settings import SETTINGS
from orchestrator.matrix.resolved import Variant
from orchestrator.matrix.yaml_text import FieldPath

NONE_FREE = 0.1
"""An open loop has connections enough where at most such a share of its requests finds none free."""


def matches(pattern: str, variant: Variant) -> bool:
    """Whether `pattern` (all, a server, server/variant, or either with `*`) names `variant`.

    An extra variant is named by its own name or a pattern of it alone, not by its server's.
    """
    if "/" not in pattern:
        return not variant.extra and (pattern == "all" or fnmatchcase(variant.server, pattern))
    return fnmatchcase(variant.name, pattern)


def suite_mistakes(matrix: Matrix, variants: tuple[Variant, ...], path: FieldPath, suite: Suite) -> Iterator[Mistake]:
    """All mistakes of one suite; `variants` are all of the matrix."""
    axes_mistakes = [
        mistake
        for where, axes in _every_axes(path, suite)
        for mistake in (*_axes_mistakes(matrix, variants, where, axes), *_open_mistakes(where, axes))
    ]
    yield from axes_mistakes or _reference_mistakes(matrix, variants, path, suite)
    yield from _probe_mistakes(path, suite)
    yield from _schedule_mistakes(path, suite)
    for at, rule in enumerate(suite.exclude):
        yield from _filter_mistakes(matrix, variants, (*path, "exclude", at), rule)


def _every_axes(path: FieldPath, suite: Suite) -> Iterator[tuple[FieldPath, Axes]]:
    yield (*path, "axes"), suite.axes
    for at, axes in enumerate(suite.include):
        yield (*path, "include", at), axes


def _probe_mistakes(path: FieldPath, suite: Suite) -> Iterator[Mistake]:
    """Settings that the suite's probe would not read."""
    settings = SETTINGS[suite.probe]
    for where, axes in _every_axes(path, suite):
        if True in axes.tls and not settings.tls:
            yield Mistake((*where, "tls"), f"{suite.probe} is measured over plain HTTP alone", "", "leave tls away")
        if any(axes.open) and not settings.open:
            yield Mistake((*where, "open"), f"{suite.probe} drives no load", "", "leave open away")
    for field in ("against", "apart", "view"):
        if field in suite.model_fields_set and not settings.compares:
            yield Mistake((*path, field), f"{suite.probe} compares no throughput", "", f"leave {field} away")
    if suite.schedule.precision and not settings.compares:
        yield Mistake((*path, "schedule", "precision"), f"{suite.probe} gives no ratios", "", "set rounds instead")


def _schedule_mistakes(path: FieldPath, suite: Suite) -> Iterator[Mistake]:
    plan = suite.schedule
    if plan.precision and plan.max_rounds < plan.rounds:
        yield Mistake(
            (*path, "schedule", "max_rounds"), f"{plan.max_rounds} is less than rounds: {plan.rounds}", "",
            f"write {plan.rounds} or more",
        )  # fmt: skip


def _open_mistakes(path: FieldPath, axes: Axes) -> Iterator[Mistake]:
    most, field = max(axes.open), (*path, "open")
    if not most:
        return
    if 0 not in axes.open:
        rates = ", ".join(map(str, axes.open))
        yield Mistake(
            field, f"{most} is a percentage of the closed loop's throughput, which is not measured here", "",
            f"write open: [0, {rates}]",
        )  # fmt: skip
    fewest, needed = min(axes.connections), connections_for(most)
    if fewest < needed:
        yield Mistake(
            (*path, "connections"),
            f"{fewest} cannot carry an open loop at {most} %: over a tenth of the requests would find none free",
            "", f"{needed} do; put fewer into an include without open",
        )  # fmt: skip


def connections_for(percent: int) -> int:
    """So many that at most NONE_FREE of the requests find none free.

    In a queue with random arrivals and service times (M/M/1), over n requests are there for a share ρⁿ⁺¹ of the time.
    At 100 % and more the queue grows without end, and no number is enough: any is allowed.
    """
    return math.ceil(math.log(NONE_FREE) / math.log(percent / 100)) if percent < 100 else 1


def _reference_mistakes(
    matrix: Matrix, variants: tuple[Variant, ...], path: FieldPath, suite: Suite
) -> Iterator[Mistake]:
    """Ratios refer to a variant, or to other values of some axes: to exactly one of the two."""
    if not SETTINGS[suite.probe].compares and not suite.baseline:
        return
    if suite.against is not None and suite.baseline:
        yield Mistake((*path, "baseline"), "ratios refer to the baseline or go by `against`, not both", "", "leave one")
    elif suite.against is not None:
        yield from _against_mistakes(matrix, path, suite)
    elif suite.baseline:
        yield from _baseline_mistakes(variants, (*path, "baseline"), suite)
    else:
        yield Mistake(
            path, "nothing says what ratios refer to", "", "add baseline: server/variant, or against: {axis: value}"
        )
    yield from _view_mistakes(path, suite)


def _baseline_mistakes(variants: tuple[Variant, ...], path: FieldPath, suite: Suite) -> Iterator[Mistake]:
    baseline = next((variant for variant in variants if variant.name == suite.baseline), None)
    if baseline is None:
        of_server = next((variant.name for variant in variants if variant.server == suite.baseline), "")
        if of_server:
            yield Mistake(path, "a baseline is one variant, not a whole server", of_server, "")
        else:
            yield unknown(path, "variant", suite.baseline, [variant.name for variant in variants])
    elif not any(matches(pattern, baseline) for axes in (suite.axes, *suite.include) for pattern in axes.server):
        yield Mistake(path, f"the suite does not measure its baseline {suite.baseline}", "", "add it to axes.server")


def _against_mistakes(matrix: Matrix, path: FieldPath, suite: Suite) -> Iterator[Mistake]:
    chosen = given(suite.against) if suite.against else {}
    where: FieldPath = (*path, "against")
    if not chosen:
        yield Mistake(where, "no axis is given", "", "write against: {axis: value}")
    absent = [_absent(matrix, (*where, axis), axis, value, values_of(suite, axis)) for axis, value in chosen.items()]
    yield from filter(None, absent)
    for axis in (axis for axis in chosen if axis in suite.apart):
        yield Mistake((*where, axis), f"{axis} stands in apart, too: cells that differ in it are not compared")
    if chosen and not any(absent) and all(len(values_of(suite, axis)) == 1 for axis in chosen):
        named = ", ".join(f"{axis} {shown(value)}" for axis, value in chosen.items())
        yield Mistake(where, f"every cell has {named} and would refer to itself", "", "give the axes a second value")


def _absent(matrix: Matrix, path: FieldPath, axis: str, value: object, values: tuple[object, ...]) -> Mistake | None:
    """The mistake where a suite with these `values` of an axis has not this one."""
    if value in values:
        return None
    if mistake := _unnamed(matrix, path, AXIS[axis], value, ()):
        return mistake
    valid = ", ".join(map(shown, values))
    return Mistake(path, f"no cell of the suite has {axis} {shown(value)}", "", f"one of: {valid}; or add it to axes")


def _unnamed(matrix: Matrix, path: FieldPath, axis: Axis, value: object, also: tuple[str, ...]) -> Mistake | None:
    """The mistake where the values of an axis are names of a part of the file, or of `also`, and this is none."""
    valid = (*getattr(matrix, axis.named_in), *also) if axis.named_in else (value,)
    return None if value in valid else unknown(path, axis.name, str(value), valid)


def _view_mistakes(path: FieldPath, suite: Suite) -> Iterator[Mistake]:
    """A table that is asked for, and would have one column alone."""
    across = suite.view.across
    if "across" in suite.view.model_fields_set and across != "none" and len(values_of(suite, across)) == 1:
        yield Mistake(
            (*path, "view", "across"), f"the suite has one value of {across}: the table would have one column", "",
            "name an axis with several values, or none",
        )  # fmt: skip


def values_of(suite: Suite, axis: str) -> tuple[object, ...]:
    """The values of an axis in a suite; an install mode `default` stands for both."""
    given = [value for axes in (suite.axes, *suite.include) for value in getattr(axes, axis)]
    return tuple(dict.fromkeys(one for value in given for one in AXIS[axis].stands_for.get(value, (value,))))


def _axes_mistakes(matrix: Matrix, variants: tuple[Variant, ...], path: FieldPath, axes: Axes) -> Iterator[Mistake]:
    for axis, values in axes:
        counted: Counter[object] = Counter(values)
        value, times = counted.most_common(1)[0]
        if times > 1:
            yield Mistake((*path, axis), f"{value!r} stands in it twice, so its cells would too", "", "name it once")
    for at, pattern in enumerate(axes.server):
        yield from _server_mistakes((*path, "server", at), pattern, variants)
    for own in OWN:
        numbered = enumerate(getattr(axes, own.name))
        found = (_unnamed(matrix, (*path, own.name, at), own, value, own.also) for at, value in numbered)
        yield from filter(None, found)


def _filter_mistakes(matrix: Matrix, variants: tuple[Variant, ...], path: FieldPath, rule: Filter) -> Iterator[Mistake]:
    if rule.server is not None:
        yield from _server_mistakes((*path, "server"), rule.server, variants)
    found = (_unnamed(matrix, (*path, name), AXIS[name], value, ()) for name, value in given(rule).items())
    yield from filter(None, found)
    if len(rule.model_fields_set) == 1:
        yield Mistake(path, "an exclude without any axis would drop every cell", "", "name a server or another axis")


def _server_mistakes(path: FieldPath, pattern: str, variants: tuple[Variant, ...]) -> Iterator[Mistake]:
    if not any(matches(pattern, variant) for variant in variants):
        valid = [variant.name for variant in variants] + [variant.server for variant in variants]
        yield unknown(path, "server", pattern, dict.fromkeys(valid))
