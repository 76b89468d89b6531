"""The host's own settings for the package index: a private CA, a mirror, a proxy. Builds need them as pip does."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from orchestrator.errors import EnvironmentProblem

_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_PIP_OPTIONS = (
    "index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "default-timeout", "retries", "cert",
    "proxy",
)  # fmt: skip
_SECTIONS = ("global", "install", "download", ":env:")
"""Of pip's configuration, the weakest first: servers are fetched by `pip download`."""
_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}


@dataclass(frozen=True)
class HostSettings:
    """pip's options by name (`index-url` …), the proxies by variable, and the CA bundle in PEM form (b"" if none).

    The items of an option that is a list are separated by blanks.
    """

    pip: Mapping[str, str]
    proxies: Mapping[str, str]
    ca: bytes

    def build_args(self) -> dict[str, str]:
        """Build arguments for images/*/Dockerfile. Proxies are arguments that Docker predefines.

        Folders of find-links are left out, since a container has them not.
        """
        pip = {name: text for name, text in self.pip.items() if name not in ("cert", "find-links")}
        if urls := [link for link in self.pip.get("find-links", "").split() if link.startswith("http")]:
            pip["find-links"] = " ".join(urls)
        return {f"PIP_{name.upper().replace('-', '_')}": text for name, text in pip.items()} | dict(self.proxies)

    def uv_environment(self) -> dict[str, str]:
        """The same for uv, which does not read pip's configuration. Its lists are separated by blanks, but find-links.

        With several indexes it takes, as pip does, the best release of any: by itself it would ask the first one alone
        that knows the distribution. Of a folder that is not there pip only warns, and uv would end.
        """
        found = {variable: self.pip[name] for name, variable in _UV.items() if name in self.pip}
        links = self.pip.get("find-links", "").split()
        if there := [link for link in links if "://" in link or Path(link).is_dir()]:
            found["UV_FIND_LINKS"] = ",".join(there)
        if proxy := self.pip.get("proxy"):
            found |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), proxy)
        return found | ({"UV_INDEX_STRATEGY": "unsafe-best-match"} if "extra-index-url" in self.pip else {})


@cache
def host_settings() -> HostSettings:
    """What pip on this host is configured with: environment first, then its configuration files.

    Raises EnvironmentProblem where pip cannot read them.
    """
    pip = pip_options(_pip_configuration())
    bundle = pip.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE", "")
    if bundle and Path(bundle).is_file():
        pip["cert"] = bundle
    proxies = {name: os.environ[name] for lower in _PROXIES for name in (lower, lower.upper()) if os.environ.get(name)}
    return HostSettings(pip, proxies, Path(bundle).read_bytes() if bundle and Path(bundle).is_file() else b"")


def pip_options(listed: str) -> dict[str, str]:
    """The options that builds need, from the output of `pip config list`: a line is `section.name='value'`, and the
    value is a Python literal, in which a list keeps its line breaks. An empty value does not count, as for pip.
    """
    found: dict[str, str] = {}
    lines = [line.partition("=") for line in listed.splitlines()]
    for section in _SECTIONS:
        for key, _, literal in lines:
            name = key.removeprefix(f"{section}.")
            if name != key and (text := " ".join(str(ast.literal_eval(literal)).split())):
                found["default-timeout" if name == "timeout" else name] = text
    return {name: found[name] for name in _PIP_OPTIONS if name in found}


def _pip_configuration() -> str:
    """`pip config list` of the interpreter that runs us; "" where it has no pip, so that there is nothing to obey."""
    if find_spec("pip") is None:
        return ""
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        why = " ".join(done.stderr.split())[:300]
        raise EnvironmentProblem(f"pip cannot read its configuration: {why}", next_step="mend the file that it names")
    return done.stdout
