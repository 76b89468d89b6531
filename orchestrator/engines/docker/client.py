"""A client of the Docker Engine, with the settings that `docker` itself would use, and what its calls may raise."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import docker
from docker.auth import AuthConfig
from docker.credentials.constants import PROGRAM_PREFIX
from docker.credentials.errors import StoreError
from docker.errors import DockerException, ImageNotFound, InvalidConfigFile, StreamParseError
from urllib3.exceptions import HTTPError

from orchestrator.errors import BuildFailed, EnvironmentProblem

CALL_TIMEOUT_S = 60
ENGINE_ERRORS = (DockerException, StoreError, StreamParseError, HTTPError, OSError)
"""What a call to the engine may raise. Not all are the SDK's: a credential helper fails, an answer is no JSON, or ends
half way; OSError is the client's own time-out, or an engine that went away."""
_UNREADABLE = (InvalidConfigFile, ValueError, KeyError, TypeError, AttributeError)
"""What the SDK raises where config.json, or what a credential helper answers, is not of the form that it expects."""


def connect(timeout_s: float = CALL_TIMEOUT_S) -> docker.DockerClient:
    """A client of the engine that DOCKER_HOST names. Raises EnvironmentProblem where none answers."""
    where = os.environ.get("DOCKER_HOST") or "the usual socket"
    try:
        client = docker.from_env(timeout=int(timeout_s))
        _leave_out_missing_helpers(client)
        client.ping()
    except _UNREADABLE as error:
        raise EnvironmentProblem(
            f"the settings of Docker's client cannot be used: {first_line(error)}",
            next_step="mend config.json in ~/.docker, or in the folder that DOCKER_CONFIG names",
        ) from error
    except ENGINE_ERRORS as error:
        denied = "Permission denied" in str(error)
        what = f"no permission to use Docker at {where}" if denied else f"no Docker Engine answers at {where}"
        cure = "add your user to the group docker" if denied else "start Docker"
        raise EnvironmentProblem(what, next_step=f"{cure}, or measure without it: --engine local") from error
    return client


def cpus_of(client: docker.DockerClient) -> tuple[int, ...]:
    """The CPUs that the engine may give out, on its own machine. Raises EnvironmentProblem where it does not say."""
    return tuple(range(int(info_of(client)["NCPU"])))


def info_of(client: docker.DockerClient) -> Mapping[str, Any]:
    try:
        return dict(client.info())
    except ENGINE_ERRORS as error:
        raise EnvironmentProblem(f"the Docker Engine does not tell its CPUs: {first_line(error)}") from error


class _Credentials(AuthConfig):
    """The client's credentials without those of helpers that are not installed: `missing`, by their programs."""

    is_empty = False
    """Of one that is empty the SDK would read the file again, and find the helpers in it."""

    def __init__(self, found: AuthConfig, missing: frozenset[str]) -> None:
        kept: dict[str, Any] = {"auths": found.auths}
        if found.creds_store and _program(found.creds_store) not in missing:
            kept["credsStore"] = found.creds_store
        helpers = found.cred_helpers.items()
        kept["credHelpers"] = {registry: name for registry, name in helpers if _program(name) not in missing}
        super().__init__(kept)
        self.missing = missing


def _program(helper: str) -> str:
    return f"{PROGRAM_PREFIX}{helper}"


def _leave_out_missing_helpers(client: docker.DockerClient) -> None:
    """Go on without the credential helpers that are not installed, as `docker build` does: the SDK would end."""
    api: Any = client.api
    found: AuthConfig = api._auth_configs
    named = {_program(helper) for helper in (found.creds_store, *found.cred_helpers.values()) if helper is not None}
    if missing := frozenset(program for program in named if shutil.which(program) is None):
        api._auth_configs = _Credentials(found, missing)


def missing_helpers(client: docker.DockerClient) -> str:
    """Which credential helpers are missing, to be said behind the reason for an engine; "" where none is."""
    api: Any = client.api
    missing = ", ".join(sorted(getattr(api._auth_configs, "missing", ())))
    return f"; without the credentials of {missing}, which is not installed" if missing else ""


def has_image(client: docker.DockerClient, reference: str) -> bool:
    try:
        client.images.get(reference)
    except ImageNotFound:
        return False
    return True


def registry_trouble(client: docker.DockerClient, reference: str) -> str:
    """Why the engine cannot read `reference` in its registry, in one line; "" where it can. Nothing is pulled."""
    api: Any = client.api
    try:
        api.inspect_distribution(reference)
    except ENGINE_ERRORS as error:
        return first_line(error)
    return ""


@contextlib.contextmanager
def told_as_build_failed(what: str) -> Iterator[None]:
    """What the engine or its client has to say against a build is told in its first line. Raises BuildFailed."""
    try:
        yield
    except ENGINE_ERRORS as error:
        raise BuildFailed(f"{what}: {first_line(error)}") from error


@contextlib.contextmanager
def readable_credentials() -> Iterator[None]:
    """Around the SDK's calls that ask credential helpers. Raises DockerException where it cannot read an answer."""
    try:
        yield
    except ENGINE_ERRORS:
        raise
    except _UNREADABLE as error:
        raise DockerException(f"what a credential helper answers cannot be read: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    text = str(getattr(error, "explanation", "") or error)
    return (text.strip().splitlines() or [type(error).__name__])[0][:300]
