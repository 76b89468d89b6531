"""Who serves: rules that read the server, parser and worker class out of what is on the stack.

A pure function over names; fingerprint.py collects the names. A new server is a row in SERVERS, and one
in OWN_PARSERS or PARSERS.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple


class Clue(NamedTuple):
    """One thing seen above the app. `what` says where: frame, self, send …; `name` is a module or a class."""

    what: str
    name: str


class Identity(NamedTuple):
    """The facts; None is what could not be found out, or what the server does not have."""

    server: str | None
    parser: str | None
    worker_class: str | None


# Package -> distribution. Gunicorn first: where its uvicorn worker runs, both are on the stack, and gunicorn owns
# the socket.
SERVERS = (
    ("gunicorn", "gunicorn"),
    ("granian", "granian"),
    ("hypercorn", "hypercorn"),
    ("daphne", "daphne"),
    ("waitress", "waitress"),
    ("cheroot", "cheroot"),
    ("uwsgi", "uwsgi"),
    ("mod_wsgi", "mod_wsgi"),
    ("socketify", "socketify"),
    ("bjoern", "bjoern"),
    ("_bjoern", "bjoern"),
    ("freastal", "freastal"),
    ("fastwsgi", "fastwsgi"),
    ("_fastwsgi", "fastwsgi"),
    ("tremolo", "tremolo"),
    ("pyvoy", "pyvoy"),
    ("uvicorn", "uvicorn"),
)

# Servers that let one choose: (where, module or value, parser). "" matches anywhere.
PARSERS = (
    ("", "uvicorn.protocols.http.h11_impl", "h11"),
    ("", "uvicorn.protocols.http.httptools_impl", "httptools"),
    ("", "uvicorn.protocols.http.zttp_impl", "zttp"),
    ("parser", "gunicorn.asgi.parser", "gunicorn"),
    ("parser", "gunicorn_h1c", "gunicorn_h1c"),
    ("request", "gunicorn.http2", "h2"),
    ("fast", "False", "gunicorn"),
    ("fast", "True", "gunicorn_h1c"),
    ("protocol", "hypercorn.protocol.h11", "h11"),
    ("protocol", "hypercorn.protocol.h2", "h2"),
    ("protocol", "hypercorn.protocol.h3", "aioquic"),
)

# Servers with one parser, which their version fixes.
OWN_PARSERS = {
    "granian": "hyper",
    "daphne": "twisted",
    "waitress": "waitress",
    "cheroot": "cheroot",
    "uwsgi": "uwsgi",
    "mod_wsgi": "httpd",
    "socketify": "uWebSockets",
    "bjoern": "http-parser",
    "freastal": "picohttpparser",
    "fastwsgi": "llhttp",
    "tremolo": "tremolo",
    "pyvoy": "envoy",
}


def identify(clues: Sequence[Clue], loaded: Collection[str]) -> Identity:
    """Read the facts off the stack, and off the loaded modules only where the stack is silent.

    `clues` come innermost first; `loaded` are names of sys.modules.
    """
    modules = [Clue("loaded", name) for name in loaded]
    server = _server(clues) or _server(modules)
    parser = _parser(clues) or OWN_PARSERS.get(server or "") or _parser(modules)
    worker = next((clue.name for clue in clues if clue.what == "worker"), None)
    return Identity(server, parser, worker)


def _server(clues: Sequence[Clue]) -> str | None:
    return next((server for package, server in SERVERS if any(_inside(clue, package) for clue in clues)), None)


def _parser(clues: Iterable[Clue]) -> str | None:
    return next(
        (parser for clue in clues for what, name, parser in PARSERS if what in ("", clue.what) and _inside(clue, name)),
        None,
    )


def _inside(clue: Clue, package: str) -> bool:
    return clue.name == package or clue.name.startswith(package + ".")
