"""Which base image a flavour gets: the official one, or a stand-in on a machine that cannot pull.

Order: the official image where it is here already; a stand-in that was made from today's recipe; pull the
official one; make the stand-in. Each step that takes time is announced, and the choice goes into every record.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Protocol

from orchestrator.engines.protocol import Say
from orchestrator.errors import EnvironmentProblem
from orchestrator.images.context import Context, read_context
from orchestrator.images.plan import ROOT, Base, BaseFacts

PULL_SILENCE_S = 20.0
"""A pull that says nothing for so long has failed."""

RECIPES = ROOT / "images"
SCRIPT = RECIPES / "bases" / "rootfs.sh"
MUSL = "bases/musl/Dockerfile"
SUITES = {"3.13": "trixie", "3.14": "forky"}
"""The Debian release that carries a Python version."""

_NEXT = "let the machine reach a registry, or run as root on Debian, or measure without Docker: --engine local"


class ImageStore(Protocol):
    """What choosing a base needs of an engine."""

    def digest(self, reference: str) -> str | None:
        """None where the image is not here."""

    def pull(self, reference: str, silence_s: float) -> str:
        """Nothing where it worked, else the reason in one line."""

    def import_rootfs(self, tar: IO[bytes], reference: str, labels: Mapping[str, str]) -> None: ...

    def build_standin(
        self, context: Context, args: Mapping[str, str], reference: str, labels: Mapping[str, str], target: str
    ) -> None: ...


def find_base(store: ImageStore, base: Base, say: Say) -> BaseFacts:
    """Raises EnvironmentProblem where neither the official image nor a stand-in can be had."""
    if digest := store.digest(base.official):
        return BaseFacts(base.official, digest, "", "the official image, present here")
    standin = standin_reference(base) if base.standin else ""
    if standin and (digest := store.digest(standin)):
        say(f"base {base.flavour}: stand-in {standin} ({base.official} is not here)")
        return BaseFacts(standin, digest, base.standin, "made earlier")
    say(f"base {base.flavour}: pulling {base.official}")
    if not (reason := pull_reason(store.pull(base.official, PULL_SILENCE_S))):
        return BaseFacts(base.official, store.digest(base.official) or "", "", "pulled")
    if not standin:
        raise EnvironmentProblem(f"{base.official} cannot be pulled: {reason}", next_step=_NEXT)
    say(f"base {base.flavour}: {base.official} cannot be pulled; making a stand-in from Debian packages ({reason})")
    make_standin(store, base, say)
    return BaseFacts(standin, store.digest(standin) or "", base.standin, f"pull failed: {reason}")


def pull_reason(text: str) -> str:
    """Why a pull failed, in words that name no host: the reason goes into records that people publish."""
    known = {
        "no such host": "the registry's name is not known here",
        "server misbehaving": "the registry's name is not known here",
        "x509": "the registry's certificate is not trusted here",
        "connection refused": "the registry refused the connection",
        "timeout": "the registry did not answer in time",
        "no answer": text,
        "not found": "the registry has no such image",
        "denied": "the registry denied access",
    }
    fallback = "the registry cannot be used" if text else ""
    return next((reason for sign, reason in known.items() if sign in text), fallback)


def standin_reference(base: Base) -> str:
    """The name of a stand-in; another recipe gives another name. Never that of an official image."""
    return f"appserver-matrix/standin-{base.standin}:py{base.python}-{_recipe(base).digest(base.standin, base.python)}"


def make_standin(store: ImageStore, base: Base, say: Say) -> None:
    """Make a stand-in whether it is here or not. Raises EnvironmentProblem where this machine cannot."""
    suite = SUITES.get(base.python)
    if suite is None:
        known = ", ".join(SUITES)
        raise EnvironmentProblem(f"no Debian release carries Python {base.python}", next_step=f"known: {known}")
    reference = standin_reference(base)
    labels = {"appserver-matrix.standin": base.standin, "appserver-matrix.kind": "standin"}
    if not base.standin.startswith("musl"):
        with rootfs(base.standin, suite) as tar:
            store.import_rootfs(tar, reference, labels)
        return
    builder = f"{reference}-builder"
    say("the musl stand-in is compiled from Debian's sources: seven minutes or more, once")
    if store.digest(builder) is None:
        with rootfs("musl-builder", suite) as tar:
            store.import_rootfs(tar, builder, labels)
    store.build_standin(
        _recipe(base), {"BUILDER": builder, "PYTHON": base.python}, reference, labels, target=base.standin
    )


@contextmanager
def rootfs(what: str, suite: str) -> Iterator[IO[bytes]]:
    """The whole root file system that images/bases/rootfs.sh writes. Raises EnvironmentProblem where it fails.

    It is kept in a file until the script has ended well: an engine makes an image even of an empty archive.
    """
    with tempfile.TemporaryFile() as tar, tempfile.TemporaryFile() as words:
        command = ["bash", str(SCRIPT), what, suite]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=words) as process:
            assert process.stdout is not None
            shutil.copyfileobj(process.stdout, tar)
        words.seek(0)
        if process.returncode:
            told = words.read().decode(errors="replace").strip().splitlines()
            raise EnvironmentProblem(told[-1] if told else f"{SCRIPT.name} failed without a word", next_step=_NEXT)
        tar.seek(0)
        yield tar


def _recipe(base: Base) -> Context:
    names = (
        ["bases", "build/with-host.sh", "host/README.md"] if base.standin.startswith("musl") else ["bases/rootfs.sh"]
    )
    return read_context(RECIPES, names)
