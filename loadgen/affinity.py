"""Pinning to CPUs, where the system can do it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from loadgen.errors import SpecError

if sys.platform == "linux":

    def allowed() -> list[int]:
        """The CPUs that this process may run on; empty where the system does not tell."""
        return sorted(os.sched_getaffinity(0))

    @contextmanager
    def pinned(cpus: tuple[int, ...]) -> Iterator[None]:
        """Run on `cpus` only, and so do the processes that are started meanwhile. None given: anywhere.

        Raises SpecError for CPUs on which this process may not run.
        """
        before = os.sched_getaffinity(0)
        if not before.issuperset(cpus):
            raise SpecError(f"cpus: {listed(set(cpus))}, but this process may run on {listed(before)} only")
        try:
            if cpus:
                os.sched_setaffinity(0, cpus)
            yield
        finally:
            os.sched_setaffinity(0, before)

    def listed(cpus: set[int]) -> str:
        """CPUs as options take them."""
        return ",".join(map(str, sorted(cpus)))

else:

    def allowed() -> list[int]:
        """The CPUs that this process may run on; empty where the system does not tell."""
        return []

    @contextmanager
    def pinned(cpus: tuple[int, ...]) -> Iterator[None]:  # noqa: ARG001
        """Run anywhere: this system does not pin."""
        yield
