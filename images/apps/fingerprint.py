"""What really runs, measured from inside a request: the value of GET /fingerprint.

Nothing here is read from the configuration. The frames above the app belong to the server that handles this very
request, so their modules and the objects that they hold say which server, parser and worker class it is.
Only this route pays for that.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from types import FrameType

from identity import OTHER_NAMES, Clue, identify, unlisted

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


def measure(interface: str) -> dict[str, object]:
    """The facts of the process that answers; `interface` is the one by which the app was just called.

    Keys: docs/apps.md. `loop` is the class of the running event loop, None under WSGI.
    """
    seen, versions = list(clues(sys._getframe(1))), installed()
    strangers = unlisted(seen, owners())
    identity = identify(seen, set(sys.modules), strangers)
    server = identity.server or ""
    packages = [name for name in (server, OTHER_NAMES.get(server, "")) if name in versions]
    return {
        "server": identity.server,
        "server_version": versions[packages[0]] if packages else None,
        "packages": list(dict.fromkeys([*packages, *strangers])),
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
        module = module_of(frame)
        yield Clue("frame", module)
        for prefix, steps, what in PLACES:
            if module.startswith(prefix) and (found := follow(frame.f_locals, steps)) is not None:
                yield Clue(what, str(found) if isinstance(found, bool) else class_name(found))
        frame = frame.f_back


def module_of(frame: FrameType) -> str:
    """The name under which a frame's module is imported; of `python -m` that is not `__main__`."""
    name, spec = frame.f_globals.get("__name__", ""), frame.f_globals.get("__spec__")
    return str(getattr(spec, "name", name) if name == "__main__" else name)


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


def canonical(name: str) -> str:
    """A distribution's name as package indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def installed() -> dict[str, str]:
    """The version of every distribution that is installed, by its canonical name."""
    found = ((dist.metadata["Name"], dist.version) for dist in metadata.distributions())
    return dict(sorted((canonical(name), version) for name, version in found if name))


@cache
def owners() -> dict[str, list[str]]:
    """The distributions that each top-level package belongs to."""
    found = metadata.packages_distributions()
    return {package: [canonical(name) for name in dict.fromkeys(names)] for package, names in found.items()}


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
