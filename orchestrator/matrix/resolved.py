"""A server entry and one of its variants, put together: what every later stage reads of the catalogue."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from string import Formatter
from typing import Literal

from packaging.utils import canonicalize_name

from loadgen.contract import SignalName
from orchestrator.matrix.models import Declares, Matrix, ServerEntry, Shutdown, SystemPackages, VariantEntry
from orchestrator.matrix.requirement import pinned_versions

PLACEHOLDERS = {
    "app": "module:app of the application",
    "module": "its module",
    "file": "its file",
    "apps": "folder of the applications",
    "host": "address to listen on",
    "port": "port to listen on",
    "workers": "number of worker processes",
    "threads": "number of threads of a worker",
    "options": "options of the variant, and those of TLS",
    "key": "TLS private key",
    "cert": "TLS certificate",
    "venv": "virtual environment of the image",
    "bin": "folder of its programs",
    "tmp": "folder that may be written to",
}


@dataclass(frozen=True)
class Variant:
    """One configuration of a server. `name` is server/variant; `image` names what it is installed in.

    `package` is the distribution that owns the socket, by its canonical name.
    """

    server: str
    variant: str
    image: str
    protocol: str
    install: tuple[str, ...]
    sdist_only: bool
    compiled: tuple[str, ...]
    run: str
    options: str
    tls: str
    env: Mapping[str, str]
    supports: frozenset[str]
    system: Mapping[str, SystemPackages]
    declares: Declares
    note: str
    extra: bool = False
    shutdown: Shutdown | None = None
    reload: SignalName | Literal[""] = ""
    timeout: str = ""
    package: str = ""

    @property
    def name(self) -> str:
        return f"{self.server}/{self.variant}"

    def argv(self, values: Mapping[str, str], *, tls: bool) -> tuple[str, ...]:
        """The launch command with `values` put in for the placeholders, split as a shell would."""
        options = f"{self.options} {self.tls}" if tls else self.options
        text = self.run.replace("{options}", options)
        return tuple(word.format_map(values) for word in shlex.split(text))


def tuned(variant: Variant, grace_s: int) -> Variant:
    """The variant with the options of its `shutdown`, and this grace period."""
    added = variant.shutdown.options.replace("{grace}", str(grace_s)) if variant.shutdown else ""
    return replace(variant, options=_joined(variant.options, added))


def placeholders(command: str) -> frozenset[str]:
    """The placeholders of a command. Raises ValueError where it cannot be read: braces, quotes, `{port:05}`."""
    shlex.split(command)
    parts = [part for part in Formatter().parse(command) if part[1] is not None]
    if dressed := next((part for part in parts if part[2] or part[3]), None):
        raise ValueError(f"{{{dressed[1]}}} stands alone, without ! or :")
    return frozenset(str(name) for _, name, _, _ in parts)


def resolve(server: str, entry: ServerEntry, name: str) -> Variant:
    """Put together the variant `name` of `entry`."""
    variant = entry.variants[name]
    install = variant.install or entry.install
    package = variant.package or entry.package or _own_package(server, install)
    return Variant(
        server=server,
        variant=name,
        image=_image(server, entry, name),
        protocol=variant.protocol or entry.protocol or "",
        install=install,
        sdist_only=variant.sdist_only or entry.sdist_only,
        compiled=variant.compiled or entry.compiled,
        run=variant.run or entry.run,
        options=_joined(entry.options, variant.options),
        tls=variant.tls or entry.tls,
        env={**entry.env, **variant.env},
        supports=(frozenset(entry.supports) | frozenset(variant.supports)) - frozenset(variant.lacks),
        system={**entry.system, **variant.system},
        declares=_declared(package, variant),
        note=_joined(entry.note, variant.note),
        extra=variant.extra,
        shutdown=variant.shutdown or entry.shutdown,
        reload=variant.reload or entry.reload,
        timeout=variant.timeout or entry.timeout,
        package=package,
    )


def catalogue(matrix: Matrix) -> tuple[Variant, ...]:
    """Every variant of every server, in the order of the file."""
    return tuple(resolve(server, entry, name) for server, entry in matrix.servers.items() for name in entry.variants)


def _image(server: str, entry: ServerEntry, name: str) -> str:
    """The server's name where a variant installs what its server does, else that of the first which does the same."""
    if _installed(entry, name) == (entry.install, entry.compiled, entry.sdist_only, {}):
        return server
    return f"{server}-{next(other for other in entry.variants if _installed(entry, other) == _installed(entry, name))}"


def _installed(entry: ServerEntry, name: str) -> tuple[object, ...]:
    """What the image of a variant depends on."""
    variant = entry.variants[name]
    return (
        variant.install or entry.install,
        variant.compiled or entry.compiled,
        variant.sdist_only or entry.sdist_only,
        variant.system,
    )


def _own_package(server: str, install: tuple[str, ...]) -> str:
    """The distribution of the entry's name where it is installed, else the first that is."""
    names, own = list(pinned_versions(install)), str(canonicalize_name(server))
    return own if own in names or not names else names[0]


def _declared(package: str, variant: VariantEntry) -> Declares:
    declares = variant.declares
    return declares if declares.server else declares.model_copy(update={"server": package})


def _joined(first: str, second: str) -> str:
    return " ".join(filter(None, (first, second)))
