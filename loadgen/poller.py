"""The one seam to the operating system's readiness calls: epoll on Linux, kqueue on macOS and BSD."""

from __future__ import annotations

import select
import sys
from typing import Protocol

Events = list[tuple[int, int]]  # (file descriptor, system-specific flags)


class Poller(Protocol):
    """Level-triggered readiness of file descriptors. Closing a descriptor removes it."""

    def add(self, fd: int, *, write: bool) -> None: ...
    def change(self, fd: int, *, write: bool) -> None: ...
    def wait(self, timeout_s: float) -> Events: ...
    def close(self) -> None: ...


if sys.platform == "linux":

    class Epoll:
        """`wait` sleeps with the resolution of epoll, 1 ms; `wait_fine` with that of select, under 0.1 ms."""

        def __init__(self) -> None:
            self._epoll = select.epoll()
            self.wait = self._epoll.poll
            self.close = self._epoll.close

        def add(self, fd: int, *, write: bool) -> None:
            self._epoll.register(fd, select.EPOLLIN | (select.EPOLLOUT if write else 0))

        def change(self, fd: int, *, write: bool) -> None:
            self._epoll.modify(fd, select.EPOLLIN | (select.EPOLLOUT if write else 0))

        def wait_fine(self, timeout_s: float) -> Events:
            if timeout_s > 0:
                select.select([self._epoll], [], [], timeout_s)
            return self._epoll.poll(0)

    System = Epoll

else:

    class Kqueue:
        """`wait` and `wait_fine` are one: kevent takes nanoseconds."""

        def __init__(self) -> None:
            self._kqueue = select.kqueue()
            self.close = self._kqueue.close

        def add(self, fd: int, *, write: bool) -> None:
            self._kqueue.control([select.kevent(fd, select.KQ_FILTER_READ, select.KQ_EV_ADD)], 0)
            if write:
                self.change(fd, write=True)

        def change(self, fd: int, *, write: bool) -> None:
            flag = select.KQ_EV_ADD if write else select.KQ_EV_DELETE
            self._kqueue.control([select.kevent(fd, select.KQ_FILTER_WRITE, flag)], 0)

        def wait(self, timeout_s: float) -> Events:
            return [(event.ident, 0) for event in self._kqueue.control(None, 256, max(timeout_s, 0.0))]

        wait_fine = wait

    System = Kqueue


def system_poller() -> System:
    """A fresh poller of this operating system. The caller closes it."""
    return System()
