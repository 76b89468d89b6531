"""Several independent tasks at once, in threads that never hold up the end of the program."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def parallel(work: Callable[[T], R], items: Sequence[T], workers: int) -> list[R]:
    """`[work(item) for item in items]`, `workers` at a time.

    The first exception of `work` is raised here once the tasks under way have ended. Ctrl-C is raised at once:
    the threads are daemons, so a build that hangs cannot hold up the clean-up.
    """
    todo: queue.SimpleQueue[tuple[int, T]] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, R | None, BaseException | None]] = queue.SimpleQueue()
    for pair in enumerate(items):
        todo.put(pair)

    def run() -> None:
        while True:
            try:
                at, item = todo.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((at, work(item), None))
            except BaseException as error:
                done.put((at, None, error))

    for _ in range(min(workers, len(items))):
        threading.Thread(target=run, daemon=True).start()
    results: dict[int, R] = {}
    errors: list[BaseException] = []
    for _ in items:
        at, result, error = _wait(done)
        if error is not None:
            errors.append(error)
        results[at] = result  # type: ignore[assignment]
    if errors:
        raise errors[0]
    return [results[at] for at in range(len(items))]


def _wait(done: queue.SimpleQueue[R]) -> R:
    """A wait that Ctrl-C can end: one without a limit blocks signals on some platforms."""
    while True:
        try:
            return done.get(timeout=1.0)
        except queue.Empty:
            continue
