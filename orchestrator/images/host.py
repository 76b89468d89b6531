"""The host's own settings for the package index: a private CA, a mirror, a proxy. Builds need them as pip does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_PIP_OPTIONS = ("index-url", "extra-index-url", "trusted-host", "default-timeout", "timeout", "retries", "cert")


@dataclass(frozen=True)
class HostSettings:
    """pip's options by name (`index-url` …), the proxies by variable, and the CA bundle in PEM form (b"" if none)."""

    pip: Mapping[str, str]
    proxies: Mapping[str, str]
    ca: bytes

    def build_args(self) -> dict[str, str]:
        """Build arguments for images/*/Dockerfile. Proxies are arguments that Docker predefines."""
        args = {f"PIP_{name.upper().replace('-', '_')}": text for name, text in self.pip.items() if name != "cert"}
        return args | dict(self.proxies)

    def uv_environment(self) -> dict[str, str]:
        """The same for uv, which does not read pip's configuration."""
        names = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "trusted-host": "UV_INSECURE_HOST"}
        found = {variable: self.pip[name] for name, variable in names.items() if name in self.pip}
        return found | ({"SSL_CERT_FILE": self.pip["cert"]} if "cert" in self.pip else {})


@cache
def host_settings() -> HostSettings:
    """What pip on this host is configured with: environment first, then its configuration files."""
    pip = {name: text for name in _PIP_OPTIONS if (text := _pip_option(name))}
    bundle = pip.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE", "")
    if bundle and Path(bundle).is_file():
        pip["cert"] = bundle
    proxies = {name: os.environ[name] for lower in _PROXIES for name in (lower, lower.upper()) if os.environ.get(name)}
    return HostSettings(pip, proxies, Path(bundle).read_bytes() if bundle and Path(bundle).is_file() else b"")


def _pip_option(name: str) -> str:
    if from_environment := os.environ.get(f"PIP_{name.upper().replace('-', '_')}"):
        return from_environment
    return _pip_configuration().get(name, "")


@cache
def _pip_configuration() -> dict[str, str]:
    """`pip config list` of the interpreter that runs us, without its section names."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    pairs = (line.partition("=") for line in done.stdout.splitlines() if line.startswith(("global.", "install.")))
    return {key.partition(".")[2]: text.strip("'\"") for key, _, text in pairs}
