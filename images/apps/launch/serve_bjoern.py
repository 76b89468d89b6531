"""Serve a WSGI app with bjoern, which comes as a library only.

One worker is `bjoern.run(app, host, port)` and nothing else: signals do what bjoern's users get (it installs no
SIGTERM handler, so as process 1 of a container it does not hear SIGTERM). More workers are the recipe of bjoern's
own documentation, listen and then fork; the parent only waits. What this launcher adds there, and only there:
SIGTERM and SIGINT to the parent end the children, a child that ends ends all, and a parent that is killed
takes its children along (on Linux).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import bjoern  # type: ignore[import-not-found,unused-ignore]

from launch import options

PR_SET_PDEATHSIG = 1


def main() -> None:
    asked = options.parse("bjoern", ["wsgi"], tls=False)
    if asked.workers == 1:
        bjoern.run(asked.app, asked.host, asked.port)
    else:
        bjoern.listen(asked.app, asked.host, asked.port)
        supervise({start_worker(os.getpid()) for _ in range(asked.workers)})


def start_worker(parent: int) -> int:
    """Fork a process that serves until it is killed; the parent gets its process id."""
    if child := os.fork():
        return child
    die_with(parent)
    bjoern.run()
    os._exit(0)


def die_with(parent: int) -> None:
    """Ask the kernel for SIGTERM when the parent is gone; where that cannot be asked, the worker stays."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it went before the kernel was asked
            os._exit(1)


def supervise(children: set[int]) -> NoReturn:
    """Wait for the first child that ends, or for a signal, then end the rest. Exits 0 after a signal, else 1."""
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        ended, _ = os.wait()
        children.remove(ended)
        raise SystemExit(1)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end(children)


def stop(_signum: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def end(children: set[int]) -> None:
    for child in children:
        os.kill(child, signal.SIGTERM)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
