"""The command line that all launchers share."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

Application = Callable[..., Any]


@dataclass(frozen=True)
class Options:
    """What was asked of a launcher; the paths of the TLS files are "" without TLS."""

    app: Application
    host: str
    port: int
    workers: int
    interface: str
    certfile: str
    keyfile: str


def parse(server: str, interfaces: Collection[str], *, tls: bool) -> Options:
    """Read sys.argv and import the app. Ends with status 2 on what `server` cannot do, threads among it."""
    parser = argparse.ArgumentParser(description=f"Serve an application with {server}.")
    parser.add_argument("app", metavar="module:app")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, choices=[1])
    parser.add_argument("--interface", default="wsgi", choices=sorted(interfaces))
    parser.add_argument("--certfile", default="")
    parser.add_argument("--keyfile", default="")
    given = parser.parse_args()
    if given.workers < 1:
        parser.error(f"--workers {given.workers}: at least 1 is needed")
    if bool(given.certfile) != bool(given.keyfile):
        parser.error("--certfile and --keyfile go together: give both, or neither for plain HTTP")
    if given.certfile and not tls:
        parser.error(f"--certfile: {server} has no TLS; leave --certfile and --keyfile away")
    try:
        app = load(given.app)
    except (ImportError, AttributeError, ValueError) as error:
        parser.error(f"{given.app}: {error}; give module:app, with the module's folder on PYTHONPATH")
    return Options(app, given.host, given.port, given.workers, given.interface, given.certfile, given.keyfile)


def load(spec: str) -> Application:
    """The object that `module:app` names. Raises ImportError, AttributeError or ValueError (no name)."""
    module, _, name = spec.partition(":")
    if not name:
        raise ValueError("the application's name is missing")
    app: Application = getattr(importlib.import_module(module), name)
    return app
