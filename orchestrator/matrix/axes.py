"""All axes of the matrix, one row each: what a suite may write, and how a value reads wherever it is shown.

Cells and their ids, `axes`, `exclude`, `against`, `apart` and `view` of a suite, the records, the tables of a report,
the CSV, the field tables of docs/ and the JSON Schemas are made from these rows. Rows stand in the order in which cells
are combined, the last one varying fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from orchestrator.layout.text import count
from orchestrator.matrix.fields import Fields
from orchestrator.matrix.values import Many, Mode, Percent, PositiveInt, Python, Threads, Workers

if TYPE_CHECKING:
    from orchestrator.matrix.resolved import Variant

Said = Callable[[Any], str]
LAUNCH, LOAD, LAST = 0, 1, 2
"""Where an axis stands in an id: with how the server is started, with what it is asked, at the end."""
REQUIRED = ...
"""Every record has the axis: there are none of before it."""


@dataclass(frozen=True)
class Words:
    """An axis in a reader's words. `by`: the axis itself. The others tell a value of it; "" where it needs no word.

    `heading` stands over its column, `name` in the name of a row, `title` in a title, `against` after "×" and "with".
    `at` goes before a value in a sentence. `rising`: the greatest value comes last, and rows are found by it.
    """

    by: str
    heading: Said = str
    name: Said = str
    title: Said = str
    against: Said = str
    at: str = "at"
    rising: bool = False


@dataclass(frozen=True)
class Setting:
    """Where a suite's values become those of cells: a variant, the protocol of each app, and the CPUs of a server."""

    variant: Variant
    protocols: Mapping[str, str]
    cpus: int


def _as_given(values: Sequence[Any], _: Setting) -> Sequence[Any]:
    return values


def _always(_: Variant, __: Any) -> str:
    return ""


@dataclass(frozen=True)
class Axis:
    """A property in which cells differ.

    What it is: `about` describes it, `stored` is the type of its value in a cell and a record, `before` its value in
    records of before the axis was. `of` reads it off the variant where it is no value of its own: nobody sets it then,
    or, for the server, by patterns.

    What a suite may write: `value` is the type that `exclude` and `against` take, `suite` that of `axes` where it is
    wider, told by `wider`; `default` is what holds where nothing is said. `named_in` is the part of matrix.yaml whose
    names are its values, `also` more of them. `settled` turns a suite's values into those of a variant's cells;
    `stands_for` lists the values that a wider one may become. `refusal` says why a variant cannot have a value.

    Where it may be named: `excluded` in `exclude`, `referred` in `against`, `viewed` in `apart` and `view.across`.
    Cells that differ in a `compared` axis are never compared.

    How it reads: `marked` in an id, at the `place`; `words` in a report.
    """

    name: str
    about: str
    stored: Any = str
    value: Any = str
    default: object = None
    suite: Any = None
    wider: str = ""
    named_in: str = ""
    also: tuple[str, ...] = ()
    settled: Callable[[Sequence[Any], Setting], Sequence[Any]] = _as_given
    stands_for: Mapping[object, tuple[object, ...]] = field(default_factory=dict)
    refusal: Callable[[Variant, Any], str] = _always
    before: object = REQUIRED
    of: Callable[[Variant], str] | None = None
    settable: bool = True
    excluded: bool = True
    referred: bool = True
    viewed: bool = True
    compared: bool = False
    place: int = LAUNCH
    words: Words | None = None
    mark: Said | None = None

    def marked(self, value: object) -> str:
        """What an id says of a value: as in the name of a row, if nothing else is said; "" where it is not told."""
        if self.mark:
            return self.mark(value)
        return self.words.name(value) if self.words and not self.of else ""


def _numbers(noun: str, letter: str) -> Words:
    return Words(
        by=f"{noun}s",
        heading=lambda value: "none" if value is None else str(value),
        name=lambda value: "" if value is None else f"{letter}{value}",
        title=lambda value: f"no {noun}s" if value is None else count(value, noun),
        against=lambda value: count(value, noun),
        rising=True,
    )


def _unsaid(_: Any) -> str:
    return ""


def _python(value: str) -> str:
    return f"Python {value}"


def _name(twin: bool) -> str:
    return "second name" if twin else "own name"


def _where_set(word: str) -> Said:
    return lambda value: word if value else ""


def _modes(values: Sequence[Any], setting: Setting) -> Sequence[Any]:
    usual = "sdist" if setting.variant.sdist_only else "wheel"
    return [usual if value == "default" else value for value in values]


def _apps(values: Sequence[Any], setting: Setting) -> Sequence[Any]:
    wanted = tuple(setting.protocols) if "all" in values else values
    return [app for app in wanted if setting.protocols[app] == setting.variant.protocol]


def _workers(values: Sequence[Any], setting: Setting) -> Sequence[Any]:
    return [setting.cpus if isinstance(value, str) else value for value in values]


def _threads(values: Sequence[Any], setting: Setting) -> Sequence[Any]:
    return values if "threads" in setting.variant.supports else (None,)


def _no_workers(variant: Variant, value: int) -> str:
    lacks = value > 1 and "workers" not in variant.supports
    return f"{variant.name} has no setting for workers: it is one process" if lacks else ""


def _no_tls(variant: Variant, value: bool) -> str:
    return f"{variant.name} does not support TLS" if value and "tls" not in variant.supports else ""


def _not_tuned(variant: Variant, value: bool) -> str:
    unknown = value and variant.shutdown is None
    return f"no flag is known that changes how {variant.name} ends" if unknown else ""


AXES: tuple[Axis, ...] = (
    Axis(
        "server", "a server or one of its variants", default="all", of=lambda variant: variant.server,
        wider="`uvicorn` (all its variants), `uvicorn/standard`, a pattern such as `gunicorn/*`, or `all`",
        referred=False, viewed=False,
    ),
    Axis("variant", "the configuration of the server", of=lambda variant: variant.variant, settable=False),
    Axis(
        "flavour", "base image family", default="slim", named_in="flavours", words=Words("flavour", at="on"),
    ),
    Axis(
        "mode", "install mode: `wheel` or `sdist`", value=Mode, default="default",
        suite=Literal["default", "wheel", "sdist"],
        wider="install mode: `wheel`, `sdist`, or `default`: wheels where they exist, else sdist",
        settled=_modes, stands_for={"default": ("wheel", "sdist")}, mark=str,
        words=Words("install mode", name=lambda value: "" if value == "wheel" else value, at="from"),
    ),
    Axis(
        "python", 'version of Python, `"3.14t"` for a free-threaded one', value=Python, default="3.13",
        words=Words("Python", name=lambda value: f"py{value}", title=_python, against=_python, at="on"),
    ),
    Axis(
        "app", "application under test", default="all", named_in="apps", also=("all",), settled=_apps,
        wider="application under test; `all`: each one that speaks the variant's protocol",
        referred=False, words=Words("app", at="with"),
    ),
    Axis(
        "protocol", "`wsgi`, `asgi` or `rsgi`", of=lambda variant: variant.protocol, settable=False,
        words=Words("protocol", name=_unsaid, title=_unsaid),
    ),
    Axis(
        "workload", "request", default="item", named_in="workloads", compared=True, place=LOAD,
        mark=lambda value: "" if value == "item" else value, words=Words("workload", at="for"),
    ),
    Axis(
        "workers", "number of worker processes", int, PositiveInt, 1, suite=Workers,
        wider="number of worker processes; `cpus`: one for each CPU that servers get on the engine's machine",
        settled=_workers, refusal=_no_workers, words=_numbers("worker", "w"),
    ),
    Axis(
        "threads", "number of threads; null in the record of a server that has none to set", int | None, Threads, 4,
        wider="number of threads, for servers that have them; 0 where a command line takes that for none",
        settled=_threads, words=_numbers("thread", "t"),
    ),
    Axis(
        "tls", "with TLS or without", bool, bool, False, refusal=_no_tls, compared=True,
        words=Words(
            "TLS", lambda value: "TLS" if value else "no TLS", _where_set("tls"), _where_set("TLS"),
            lambda value: "TLS" if value else "no TLS", at="with",
        ),
    ),
    Axis(
        "connections", "connections that are kept open at once", int, PositiveInt, 32, compared=True, place=LAST,
        referred=False, words=_numbers("connection", "c"),
    ),
    Axis(
        "tuned", "started and stopped as the entry's `shutdown` says", bool, bool, False, before=False,
        refusal=_not_tuned, referred=False, viewed=False,
        words=Words("tuned", name=_where_set("tuned"), title=_where_set("tuned")),
    ),
    Axis(
        "twin", "the same server once more, under another name: started, checked and measured for itself",
        bool, bool, False, before=False,
        words=Words(
            "name", _name, _where_set("twin"), lambda value: _name(value) if value else "", _name, at="under its",
        ),
    ),
    Axis(
        "open", "0: closed loop; else open loop at so many percent of the closed one's throughput", int, Percent, 0,
        before=0, compared=True, place=LOAD, referred=False,
        words=Words(
            "load", lambda value: f"{value} %" if value else "closed", lambda value: f"open{value}" if value else "",
            lambda value: f"open loop at {value} %" if value else "", at="at",
        ),
    ),
)  # fmt: skip
AXIS: Mapping[str, Axis] = {axis.name: axis for axis in AXES}
OWN = tuple(axis for axis in AXES if axis.of is None)
"""Those whose value a cell holds itself."""
IN_IDS = tuple(sorted(OWN, key=lambda axis: axis.place))
"""In the order of an id, which begins with the variant's name."""
TOLD = tuple(
    sorted((axis for axis in AXES if axis.words), key=lambda axis: (axis.name != "app", axis.place, axis.name == "tls"))
)
"""In the order in which names of rows and titles tell them: the app first, then as in an id, but TLS after the others
that a server is started with."""
COMPARED = tuple(axis.name for axis in TOLD if axis.compared)
"""Axes in which cells that are compared never differ; a suite's `apart` names more."""

if TYPE_CHECKING:
    AxisName = str
else:
    AxisName = Literal[tuple(axis.name for axis in AXES if axis.viewed and axis.settable)]


def combined_fields() -> Fields:
    """The fields of `axes`: for each axis one value or a list."""
    many: Any = Many
    given = [(axis.name, many[axis.suite or axis.value], axis) for axis in AXES if axis.settable]
    return {name: (kind, Field((axis.default,), description=axis.wider or axis.about)) for name, kind, axis in given}


def chosen_fields(axes: Iterable[Axis]) -> Fields:
    """The fields of `exclude` and `against`: for each axis one value or none."""
    return {axis.name: (axis.value | None, Field(default=None, description=axis.about)) for axis in axes}


def stored_fields() -> Fields:
    """The fields of a cell on record."""
    return {axis.name: (axis.stored, Field(default=axis.before, description=axis.about)) for axis in AXES}
