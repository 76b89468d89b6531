"""Asks the package indexes that pip is configured with which files a project has: by the simple JSON API (PEP 691).

As pip does, it obeys the indexes' addresses, the CA bundle, trusted hosts, proxies, credentials (in an address, or in
netrc), retries and the time-out. Left out are keyrings and client certificates.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests
from packaging.utils import canonicalize_name
from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from urllib3.exceptions import InsecureRequestWarning, ReadTimeoutError
from urllib3.util import Retry

from orchestrator.errors import EnvironmentProblem
from orchestrator.images.host import HostSettings, host_settings
from orchestrator.images.simple_index import Coverage, File, coverage, parse_project, release

MEDIA_TYPE = "application/vnd.pypi.simple.v1+json"
NEXT = "`matrix doctor` checks the package index"
_RETRIED = (500, 502, 503, 520, 524, 527)
"""Answers after which pip asks again."""


@dataclass(frozen=True)
class Answer:
    """What an index answered when asked for a project: status of HTTP, media type, text."""

    status: int
    type: str
    text: str


def look_up(wanted: Mapping[str, str]) -> dict[str, Coverage | None]:
    """What the indexes have of each project, by name, of the pinned version or ("") the newest.

    None where they have no such release. Raises EnvironmentProblem where an index cannot be asked.
    """
    host = host_settings()
    urls = index_urls(host)
    with _session(host) as session:
        return {name: read_answers([_ask(session, host, url, name) for url in urls], pinned)
                for name, pinned in wanted.items()}  # fmt: skip


def index_urls(host: HostSettings) -> tuple[str, ...]:
    """The addresses of the indexes in pip's order; none with pip's `no-index`."""
    if host.pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return ()
    return (host.pip.get("index-url") or _default_index(), *host.pip.get("extra-index-url", "").split())


def read_answers(answers: Iterable[Answer], pinned: str) -> Coverage | None:
    """From the answers of all indexes. Raises EnvironmentProblem where one of them does not speak the JSON API."""
    files: list[File] = []
    for answer in answers:
        if answer.status == 404:
            continue
        if answer.status in (401, 403):
            raise EnvironmentProblem(
                f"the package index denies access: status {answer.status}",
                next_step="give user and password in netrc, or in pip's index-url",
            )
        if answer.status != 200 or not answer.type.startswith(MEDIA_TYPE):
            what = f"status {answer.status}, {answer.type or 'no type'}"
            raise EnvironmentProblem(f"the package index has no simple JSON API (PEP 691): {what}", next_step=NEXT)
        try:
            files += parse_project(answer.text)
        except ValueError as error:
            raise EnvironmentProblem(f"the package index: {error}", next_step=NEXT) from error
    version = release(files, pinned)
    return coverage(files, version) if version is not None else None


class _Unchecked(HTTPAdapter):
    """For pip's trusted hosts: their certificate is not checked, that of where they redirect to is."""

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        return super().send(request, *args, **options | {"verify": False})


@contextmanager
def _session(host: HostSettings) -> Iterator[requests.Session]:
    """Reads proxies and netrc from the environment by itself."""
    retry = Retry(
        int(host.pip.get("retries", 5)), backoff_factor=0.25, status_forcelist=_RETRIED, raise_on_status=False
    )
    with requests.Session() as session, warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRequestWarning)
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry))
        for trusted in host.pip.get("trusted-host", "").split():
            for end in ("/",) if ":" in trusted else ("/", ":"):  # without a port: any port of this host
                session.mount(f"https://{trusted}{end}", _Unchecked(max_retries=retry))
        yield session


def _ask(session: requests.Session, host: HostSettings, url: str, name: str) -> Answer:
    """Raises EnvironmentProblem, which names no address: it may hold a password."""
    where = f"{url.rstrip('/')}/{canonicalize_name(name)}/"
    timeout, proxy = float(host.pip.get("default-timeout", 15)), host.pip.get("proxy")
    proxies = {"http": proxy, "https": proxy} if proxy else None
    headers, verify = {"Accept": MEDIA_TYPE}, host.pip.get("cert", True)
    try:
        answer = session.get(where, headers=headers, timeout=timeout, verify=verify, proxies=proxies)
        return Answer(answer.status_code, answer.headers.get("Content-Type", ""), answer.text)
    except (requests.RequestException, ValueError) as error:
        why = f"no answer within {timeout:g} s" if _timed_out(error) else f"it cannot be asked: {_why(error)}"
        raise EnvironmentProblem(f"the package index: {why}", next_step=NEXT) from error


def _reason(error: Exception) -> object:
    """What ended the last of several tries, where there were several; else the error itself."""
    inner = error.args[0] if error.args else None
    return getattr(inner, "reason", None) or error


def _timed_out(error: Exception) -> bool:
    return isinstance(error, requests.Timeout) or isinstance(_reason(error), ReadTimeoutError)


def _why(error: Exception) -> str:
    """The innermost reason, without addresses."""
    text = re.sub(r"^\w+\(host=[^)]*\): ", "", str(_reason(error)))
    return re.sub(r"\w+://\S+", "<url>", text)[:300] or type(error).__name__


def _default_index() -> str:
    """The index that pip takes where none is configured, from its own help. Raises EnvironmentProblem."""
    command = [sys.executable, "-m", "pip", "download", "--help"]
    told = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "COLUMNS": "200"}
    )
    found = re.search(r"--index-url <url>.*?\(default\s+(https?://[^\s)]+)\)", told.stdout, re.DOTALL)
    if not found:
        raise EnvironmentProblem("pip does not tell its default index", next_step="pip config set global.index-url URL")
    return found[1]
