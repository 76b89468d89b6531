"""Small made-up runs, one for each shape that a suite is read in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from report_sample import BASELINE, CLIENT_BOUND, NO_IMAGE, assembled, cell, measured, rounds, run_file, steady

from orchestrator.evidence.model import Record, RunFile
from orchestrator.judge.assemble import Measured
from orchestrator.matrix.cell import Cell
from orchestrator.probes.results import Mismatch, Round

Run = tuple[RunFile, list[Record]]
_LOG = (Mismatch("access_log", "False", "True"),)


def workers() -> Run:
    """Against one worker: one that gains, one that loses, a lower bound, a void and an unranked reference, none."""
    gains = {1: 967, 2: 1_900, 4: 3_650}
    items = [measured(cell("gunicorn/sync", "flask", 64, workers=n), rounds(rps, 64)) for n, rps in gains.items()]
    for number, rps in {1: 19_000, 2: 18_950, 4: 18_000}.items():
        items.append(measured(cell(BASELINE, "starlette", 64, workers=number), rounds(rps, 64)))
    items += [
        measured(cell("granian/asgi", "starlette", 64, workers=1), rounds(20_000, 64)),
        measured(cell("granian/asgi", "starlette", 64, workers=2), rounds(35_000, 64, changes=CLIENT_BOUND)),
        measured(cell("waitress/a", "flask", 64), rounds(900, 64, changes={"errors": {"reset": 40}})),
        measured(cell("waitress/a", "flask", 64, workers=2), rounds(1_800, 64)),
        measured(cell("cheroot/a", "flask", 64), rounds(900, 64, mismatches=_LOG)),
        measured(cell("cheroot/a", "flask", 64, workers=2), rounds(1_800, 64)),
        measured(cell("daphne/a", "starlette", 64), (), NO_IMAGE),
        measured(cell("daphne/a", "starlette", 64, workers=2), rounds(4_000, 64)),
    ]
    view = {"across": "workers", "show": ["rps", "ratio", "p50"]}
    made = steady(assembled(items, "", against={"workers": 1}))
    return run_file(made, suite="workers", baseline="", against={"workers": 1}, view=view), made


def runners() -> Run:
    """Two workloads, workers apart, threads in the names; the baseline stands in two rows."""
    rps = {("item", 1): 2_228, ("item-sync", 1): 1_819, ("item", 2): 3_415, ("item-sync", 2): 2_654}
    items: list[Measured] = []
    for (workload, number), value in rps.items():
        axes: dict[str, Any] = {"workload": workload, "workers": number}
        for threads in (0, 1):
            of = cell("gunicorn/uvicorn-worker-threads", "fastapi", threads=threads, **axes)
            items.append(measured(of, rounds(value - 20 * threads)))
        items.append(measured(cell(BASELINE, "fastapi", **axes), rounds(value * 0.8)))
    made = steady(assembled(items, "gunicorn/uvicorn-worker-threads", apart=("workers",)))
    view = {"across": "workload", "show": ["rps", "ratio"]}
    changes: dict[str, Any] = {"baseline": "gunicorn/uvicorn-worker-threads", "apart": ["workers"], "view": view}
    return run_file(made, suite="runners", **changes), made


def native() -> Run:
    """All comparisons of a workload in one table: TLS and workers vary, some rows are tied, one is a lower bound."""
    figures: Mapping[tuple[str, str], Mapping[tuple[int, bool], int]] = {
        ("gunicorn/uvicorn-worker", "raw-asgi"): {(1, False): 112_000, (4, False): 374_000, (1, True): 90_000},
        ("freastal/wsgi", "raw-wsgi"): {(1, False): 357_000, (4, False): 856_000, (1, True): 302_000},
        ("freastal/asgi", "raw-asgi"): {(1, False): 277_000, (4, False): 799_000, (1, True): 238_000},
        ("bjoern/script", "raw-wsgi"): {(1, False): 256_000, (4, False): 786_000},
    }
    items = []
    for number, tls in ((1, False), (4, False), (1, True)):
        for (name, app), found in figures.items():
            if (number, tls) in found:
                of = cell(name, app, 40, workload="bytes-500", workers=number, tls=tls, threads=None)
                bound = CLIENT_BOUND if name == "freastal/wsgi" and number == 4 else {}
                items.append(measured(_protocol(of), rounds(found[number, tls], 40, changes=bound)))
    items.append(measured(_protocol(cell("meinheld/a", "raw-wsgi", 40, workload="bytes-500")), (), NO_IMAGE))
    made = steady(assembled(items, "gunicorn/uvicorn-worker", apart=("workers",)))
    view = {"across": "none", "show": ["rps", "p50", "p99", "ratio", "between", "within"]}
    changes: dict[str, Any] = {"baseline": "gunicorn/uvicorn-worker", "apart": ["workers"], "view": view}
    return run_file(made, suite="native", **changes), made


def _protocol(of: Cell) -> Cell:
    return replace(of, variant=replace(of.variant, protocol="wsgi" if "wsgi" in of.app else "asgi"))


def images() -> Run:
    """Flavours beside each other, install modes below; the first ratio of the row that is compared is 1."""
    items = []
    for name, app, rps in ((BASELINE, "starlette", 19_000), ("uwsgi/pyuwsgi", "flask", 8_700)):
        for flavour, mode, share in (("slim", "wheel", 1.0), ("alpine", "wheel", 0.9), ("debian", "sdist", 1.01)):
            server = {"cpu_s": 0.98, "rss_bytes": 41_300_000, "pss_bytes": 39_000_000, "processes": 2}
            changes = {"server": server}
            items.append(measured(cell(name, app, flavour=flavour, mode=mode), rounds(rps * share, changes=changes)))
    against = {"flavour": "slim", "mode": "wheel"}
    made = steady(assembled(items, "", against=against))
    view = {"across": "flavour", "show": ["rps", "ratio", "memory", "cpu-ratio"]}
    return run_file(made, suite="images", baseline="", against=against, view=view), made


def aa() -> Run:
    """Three pairs: one that differs by nothing, one whose interval misses 1, one outside the order."""
    items = []
    for name, rps, twin, mismatches in (
        (BASELINE, 19_000, 19_100, ()), ("granian/asgi", 27_000, 28_500, ()), ("waitress/a", 900, 905, _LOG),
    ):  # fmt: skip
        items += [
            measured(cell(name, "starlette", 8), rounds(rps, 8)),
            measured(cell(name, "starlette", 8, twin=True), rounds(twin, 8, mismatches=mismatches)),
        ]
    made = steady(assembled(items, "", against={"twin": False}))
    view = {"across": "twin", "show": ["rps", "ratio", "cpu"]}
    return run_file(made, suite="aa", baseline="", against={"twin": False}, view=view), made


def capacity() -> Run:
    """A closed loop, and open ones at shares of it; the last but one is overloaded at 90 %."""
    items = []
    for name, app, rps in ((BASELINE, "starlette", 20_000), ("gunicorn/sync", "flask", 1_000)):
        items.append(measured(cell(name, app), rounds(rps)))
        for share in (50, 90):
            answered = share if name == BASELINE or share == 50 else 70
            items.append(measured(cell(name, app, open=share), _open(rps * share / 100, rps * answered / 100)))
    made = steady(assembled(items))
    view = {"across": "open", "show": ["rps", "p50", "p99"]}
    return run_file(made, suite="capacity", view=view), made


def _open(asked: float, answered: float) -> tuple[Round, ...]:
    """What comes in after the last right answer is answered too, but late."""
    made = rounds(answered, 4, changes={"requests": round(asked * 1.01)})
    return tuple(replace(one, slices=tuple(replace(slice_, rate=asked) for slice_ in one.slices)) for one in made)


SHAPES: Mapping[str, Callable[[], Run]] = {
    "workers": workers, "runners": runners, "native": native, "images": images, "aa": aa, "capacity": capacity,
}  # fmt: skip


def shape(name: str, **changes: Any) -> Run:
    """A shape, with other fields of its run."""
    run, made = SHAPES[name]()
    return run.model_copy(update=changes), made
