"""What really runs, measured from inside a request: the value of GET /fingerprint.

Nothing here is read from the configuration. The frames above the app belong to the server that handles this very
request, so their modules and the objects that they hold say which server, parser and worker class it is.
Only this route pays for that.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import threading
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from types import FrameType

from identity import Clue, identify

Steps = tuple[str | int, ...]
"""A way through keys, attributes and indices."""

# Not start_response: the class of fastwsgi's is half made, and asking it for its name ends the process.
# (module of the frame, path from one of its local variables, what the clue is called)
PLACES: tuple[tuple[str, Steps, str], ...] = (
    ("", ("self",), "self"),
    ("", ("send", "__self__"), "send"),
    ("", ("environ", "wsgi.input"), "input"),
    ("gunicorn.workers.", ("self",), "worker"),
    ("gunicorn.workers.", ("req",), "request"),
    ("gunicorn.workers.", ("req", "_use_fast"), "fast"),
    ("gunicorn.asgi.protocol", ("self", "_callback_parser"), "parser"),
    ("hypercorn.app_wrappers", ("send", "__self__", "send", "__self__"), "protocol"),
    ("hypercorn.app_wrappers", ("send", "args", 0, "__self__", "send", "__self__"), "protocol"),
)

# The distributions whose versions are told where they are installed.
DISTRIBUTIONS = (
    *("uvicorn", "uvicorn-worker", "gunicorn", "granian", "hypercorn", "daphne", "waitress", "cheroot", "uwsgi"),
    *("pyuwsgi", "mod_wsgi", "mod_wsgi-standalone", "socketify", "bjoern", "freastal", "fastwsgi", "tremolo", "pyvoy"),
    *("fastapi-cli", "uvloop", "rloop", "trio", "h11", "h2", "httptools", "zttp", "gunicorn_h1c", "twisted"),
    *("starlette", "fastapi", "flask", "werkzeug", "pydantic", "anyio"),
)
# The same server packed a second time.
OTHER_NAMES = {"uwsgi": "pyuwsgi", "mod_wsgi": "mod_wsgi-standalone"}


def measure(interface: str) -> dict[str, object]:
    """The facts of the process that answers; `interface` is the one by which the app was just called.

    Keys: docs/apps.md. `loop` is the class of the running event loop, None under WSGI.
    """
    identity = identify(list(clues(sys._getframe(1))), set(sys.modules))
    versions = dict(installed())
    server = identity.server or ""
    return {
        "server": identity.server,
        "server_version": versions.get(server) or versions.get(OTHER_NAMES.get(server, "")),
        "interface": interface,
        "loop": None if interface == "wsgi" else loop_class(),
        "parser": identity.parser,
        "worker_class": identity.worker_class,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
        "libc": libc(),
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "threads": threading.active_count(),
        "argv": argv(),
        "versions": versions,
    }


def clues(frame: FrameType | None) -> Iterator[Clue]:
    """What the frames above the app hold, innermost first."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        yield Clue("frame", module)
        for prefix, steps, what in PLACES:
            if module.startswith(prefix) and (found := follow(frame.f_locals, steps)) is not None:
                yield Clue(what, str(found) if isinstance(found, bool) else class_name(found))
        frame = frame.f_back


def follow(start: object, steps: Steps) -> object:
    """The object at the end of the way, None where the way breaks off."""
    for step in steps:
        if isinstance(step, int):
            start = start[step] if isinstance(start, tuple) and step < len(start) else None
        elif isinstance(start, Mapping):
            start = start.get(step)
        else:
            start = getattr(start, step, None)
    return start


def class_name(thing: object) -> str:
    kind = type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"


def loop_class() -> str | None:
    """The class of the event loop that runs this code; trio has no such object and is called `trio`."""
    try:
        return class_name(asyncio.get_running_loop())
    except RuntimeError:
        return "trio" if "trio" in sys.modules else None


def installed() -> Iterator[tuple[str, str]]:
    for name in DISTRIBUTIONS:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def libc() -> str | None:
    """`glibc 2.41`, `musl`, or None on systems with neither."""
    name, version = platform.libc_ver()
    if name:
        return f"{name} {version}"
    return "musl" if any(Path("/lib").glob("ld-musl-*")) else None


def argv() -> list[str]:
    """The command line as the kernel knows it, where there is /proc; a server may have changed sys.argv."""
    try:
        return Path("/proc/self/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return list(sys.orig_argv)
