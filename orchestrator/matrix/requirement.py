"""What `install` may hold: distributions pinned to one full version, each in the one spelling that pip gets."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import Version

from orchestrator.matrix.mistake import WrongText

MAX_LENGTH = 200
_FORM = "write name==version or name[extra]==version"
_ADDRESS = re.compile(r"://|^\s*[./~]|@")
_GUESS = re.compile(r"([\w.-]+?)\s*(?:\[([\w.,\s-]*)\]?)?\s*(?:[=~>]=|=)=?\s*v?([0-9][\w.!+-]*)(?!\S)", re.ASCII)


def pinned(text: str) -> str:
    """A requirement without blanks, its names as packages are compared: `Uvicorn [standard] == 0.54.0` becomes
    `uvicorn[standard]==0.54.0`. Raises WrongText for all that is not pinned to one version.
    """
    requirement = _parsed(text)
    found, name = list(requirement.specifier), _name(requirement)
    if not found:
        raise WrongText(f"{text!r} is not pinned", next_step=f"write {name}==VERSION")
    if len(found) > 1 or found[0].operator != "==":
        raise WrongText(f"{text!r} is not pinned to one version with ==", _guess(text), f"write {name}==VERSION")
    try:
        return f"{name}=={Version(found[0].version)}"
    except ValueError as error:
        raise WrongText(f"{text!r} is not pinned to one full version", next_step=f"write {name}==VERSION") from error


def each_once(requirements: tuple[str, ...]) -> tuple[str, ...]:
    """`requirements`, which are pinned. Raises WrongText where two are of one distribution."""
    seen: dict[str, str] = {}
    for requirement in requirements:
        first = seen.setdefault(distribution(requirement), requirement)
        if first is not requirement:
            raise WrongText(f"{first} and {requirement} are one distribution", next_step="name it once")
    return requirements


def distribution(requirement: str) -> str:
    """The distribution of a pinned requirement, as packages are compared."""
    return str(canonicalize_name(Requirement(requirement).name))


def pinned_versions(requirements: Iterable[str]) -> dict[str, str]:
    """Version by distribution of pinned requirements."""
    return {distribution(requirement): requirement.rpartition("==")[2] for requirement in requirements}


def distribution_name(text: str) -> str:
    """The name of a distribution as packages are compared: `Mod_WSGI` becomes `mod-wsgi`. Raises WrongText."""
    try:
        return str(canonicalize_name(text, validate=True))
    except InvalidName as error:
        close = re.sub("[^A-Za-z0-9._-]+", "", text.partition("==")[0]).strip("._-")[:MAX_LENGTH]
        what = f"{text[:60]!r} is not the name of a distribution"
        raise WrongText(what, close, "write it as its index does") from error


def _parsed(text: str) -> Requirement:
    if text.lstrip().startswith("-"):
        raise WrongText(f"{text[:60]!r} is an option of pip, not a requirement", "", "options belong into pip.conf")
    if _ADDRESS.search(text):
        raise WrongText(
            f"{text[:120]!r} is an address: what it gives can change, and records compare versions",
            next_step="write name==version, with index-url or find-links in pip.conf where the file is your own",
        )
    if not text.isascii() or len(text) > MAX_LENGTH:
        what = f"longer than {MAX_LENGTH} characters" if text.isascii() else "not ASCII"
        raise WrongText(f"{text[:60]!r} is not a requirement: it is {what}", next_step=_FORM)
    bare, condition, _ = text.partition(";")
    if condition:
        what = f"{text!r} has a condition behind `;`, and what is installed would depend on the machine"
        raise WrongText(what, _guess(bare), "leave it out, and write one variant per Python")
    try:
        return Requirement(text)
    except ValueError as error:
        raise WrongText(f"{text!r} is not a requirement", _guess(text), _FORM) from error


def _name(requirement: Requirement) -> str:
    extras = ",".join(sorted(str(canonicalize_name(extra)) for extra in requirement.extras))
    return str(canonicalize_name(requirement.name)) + (f"[{extras}]" if extras else "")


def _guess(text: str) -> str:
    """The requirement that was meant, where a name and a version can be made out; else ""."""
    if not (found := _GUESS.match(text.strip())):
        return ""
    extras = f"[{found[2].strip(' ,')}]" if found[2] else ""
    try:
        return f"{_name(Requirement(f'{found[1]}{extras}'))}=={Version(found[3])}"
    except ValueError:
        return ""
