"""Who serves: rules that read the server, parser and worker class out of what is on the stack.

Pure functions over names; fingerprint.py collects the names. A server needs no row here: one that SERVERS does not
list is known by the package that its frames come from. Rows say what frames cannot: which of two servers on one stack
owns the socket, which is there though Python shows no frame of it, and what parses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple


class Clue(NamedTuple):
    """One thing seen above the app. `what` says where: frame, self, send …; `name` is a module or a class."""

    what: str
    name: str


class Identity(NamedTuple):
    """The facts; None is what could not be found out, or what the server does not have.

    `server` is the canonical name of a distribution.
    """

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
    ("mod_wsgi", "mod-wsgi"),
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

# The same server packed a second time.
OTHER_NAMES = {"uwsgi": "pyuwsgi", "mod-wsgi": "mod-wsgi-standalone"}

# Distributions on a stack that are no server: command lines that start one, event loops, frameworks with what they
# stand on (requirements.txt; a test keeps up with it).
LIBRARIES = frozenset(
    (
        *("click", "typer", "typer-slim", "rich", "rich-toolkit", "fastapi-cli"),
        *("uvloop", "rloop", "winloop", "trio", "outcome", "greenlet"),
        *("annotated-doc", "annotated-types", "anyio", "asgiref", "blinker", "colorama", "fastapi", "flask", "idna"),
        *("itsdangerous", "jinja2", "markupsafe", "opentelemetry-api", "pydantic", "pydantic-core", "starlette"),
        *("typing-extensions", "typing-inspection", "werkzeug"),
    )
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
    "mod-wsgi": "httpd",
    "socketify": "uWebSockets",
    "bjoern": "http-parser",
    "freastal": "picohttpparser",
    "fastwsgi": "llhttp",
    "tremolo": "tremolo",
    "pyvoy": "envoy",
}


def identify(clues: Sequence[Clue], loaded: Collection[str], strangers: Sequence[str] = ()) -> Identity:
    """Read the facts off the stack, and off the loaded modules only where the stack is silent.

    `clues` come innermost first; `loaded` are names of sys.modules; `strangers`: what `unlisted` found.
    """
    modules = [Clue("loaded", name) for name in loaded]
    server = _server(clues) or next(iter(strangers), None) or _server(modules)
    parser = _parser(clues) or OWN_PARSERS.get(server or "") or _parser(modules)
    worker = next((clue.name for clue in clues if clue.what == "worker"), None)
    return Identity(server, parser, worker)


def unlisted(clues: Sequence[Clue], owners: Mapping[str, Iterable[str]]) -> list[str]:
    """Distributions on the stack that are in no table, the outermost first: what drives a server calls what it uses.

    `owners`: the canonical names of the distributions that a top-level package belongs to. The standard library and
    the apps belong to none.
    """
    seen = (owner for clue in reversed(clues) for owner in owners.get(clue.name.partition(".")[0], ()))
    listed = {name for _, name in SERVERS} | LIBRARIES | set(OTHER_NAMES.values())
    return [name for name in dict.fromkeys(seen) if name not in listed]


def _server(clues: Sequence[Clue]) -> str | None:
    return next((server for package, server in SERVERS if any(_inside(clue, package) for clue in clues)), None)


def _parser(clues: Iterable[Clue]) -> str | None:
    return next(
        (parser for clue in clues for what, name, parser in PARSERS if what in ("", clue.what) and _inside(clue, name)),
        None,
    )


def _inside(clue: Clue, package: str) -> bool:
    return clue.name == package or clue.name.startswith(package + ".")
