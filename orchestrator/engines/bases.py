"""Which base image a flavour gets: the official one, or a stand-in on a machine that cannot pull.

Order: the official image where it is here already; a stand-in that was made from today's recipe; pull the
official one; make the stand-in. Each step that takes time is announced, and the choice goes into every record.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from orchestrator.engines.protocol import Say
from orchestrator.errors import EnvironmentProblem
from orchestrator.images.plan import ROOT, Base, BaseFacts

PULL_SILENCE_S = 20.0
"""A pull that says nothing for so long has failed."""

STANDIN_LABEL = "appserver-matrix.standin"
RECIPE_LABEL = "appserver-matrix.recipe"
SUITES = {"3.13": "trixie", "3.14": "forky"}
"""The Debian release that carries a Python version."""

_NEXT = "let the machine reach a registry, run as root on Debian, or use the local engine: --engine local"


class ImageStore(Protocol):
    """What choosing a base needs of an engine."""

    def digest(self, reference: str) -> str | None:
        """None where the image is not here."""

    def pull(self, reference: str, silence_s: float) -> str:
        """ "" where it worked, else the reason in one line."""

    def import_rootfs(self, tar: IO[bytes], reference: str, labels: Mapping[str, str]) -> None: ...

    def build_folder(
        self, folder: Path, args: Mapping[str, str], reference: str, labels: Mapping[str, str]
    ) -> None: ...


def find_base(store: ImageStore, base: Base, say: Say) -> BaseFacts:
    """Raises EnvironmentProblem where neither the official image nor a stand-in can be had."""
    if digest := store.digest(base.official):
        return BaseFacts(base.official, digest, "", "the official image, present here")
    recipe = recipe_digest(base) if base.standin else ""
    reference = f"appserver-matrix/standin-{base.standin}:py{base.python}-{recipe}"
    if recipe and (digest := store.digest(reference)):
        say(f"base {base.flavour}: stand-in {reference}, made from Debian packages (no {base.official} here)")
        return BaseFacts(reference, digest, base.standin, "made earlier from Debian packages")
    say(f"base {base.flavour}: pulling {base.official}")
    if not (reason := store.pull(base.official, PULL_SILENCE_S)):
        return BaseFacts(base.official, store.digest(base.official) or "", "", "pulled")
    if not recipe:
        raise EnvironmentProblem(f"{base.official} cannot be pulled: {reason}", next_step=_NEXT)
    say(f"base {base.flavour}: {base.official} cannot be pulled ({reason}); making the stand-in from Debian packages")
    make_standin(store, base, reference, recipe, say)
    return BaseFacts(reference, store.digest(reference) or "", base.standin, f"pull failed: {reason}")
