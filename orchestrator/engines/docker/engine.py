"""The Docker engine."""

from __future__ import annotations

import contextlib
import io
import json
import os
import queue
import re
import shutil
import tarfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from itertools import count
from typing import IO, Any

import docker
from docker.auth import AuthConfig
from docker.credentials.constants import PROGRAM_PREFIX
from docker.credentials.errors import StoreError
from docker.errors import APIError, DockerException, ImageNotFound, InvalidConfigFile, StreamParseError
from docker.models.containers import Container
from urllib3.exceptions import HTTPError

from orchestrator.engines.agent import Agent
from orchestrator.engines.docker.attach import AttachedChannel
from orchestrator.engines.docker.bases import MUSL, find_base
from orchestrator.engines.docker.inventory import Held
from orchestrator.engines.docker.options import (
    LABEL_KIND,
    LABEL_OWNER,
    LABEL_RUN,
    LIMITS,
    PORT,
    TLS,
    agent_beside,
    agent_options,
    labels,
    owner,
    server_options,
    signaller_of,
)
from orchestrator.engines.ends import Exit, words_of
from orchestrator.engines.protocol import Box, EngineFacts, Launch, Placement, Say, Seat
from orchestrator.engines.tls import certificate
from orchestrator.errors import BuildFailed, EnvironmentProblem, LoadFailed, ServerFailed
from orchestrator.images.context import Context, loadgen_context, server_context
from orchestrator.images.host import host_settings
from orchestrator.images.plan import LOADGEN, Base, BaseFacts, BuiltImage, ImageSpec, unfinished

CALL_TIMEOUT_S = 60
POLL_S = 0.05
BUILDS_END_WITHIN_S = 20.0
"""A step that only copies files cannot be ended: an interrupt waits for it."""
_INSTALL_REPORT = "/opt/venv/install.json"
_REPOSITORY = "appserver-matrix"
_ATTACH = {"stdin": 1, "stdout": 1, "stderr": 0, "stream": 1}
_STEP = re.compile(r"---> Running in ([0-9a-f]+)")
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
            f"the settings of Docker's client cannot be used: {_first_line(error)}",
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
    return tuple(range(int(_info(client)["NCPU"])))


def _info(client: docker.DockerClient) -> Mapping[str, Any]:
    try:
        return dict(client.info())
    except ENGINE_ERRORS as error:
        raise EnvironmentProblem(f"the Docker Engine does not tell its CPUs: {_first_line(error)}") from error


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


def _without(client: docker.DockerClient) -> str:
    """Which credential helpers are missing, to be said behind the reason for an engine; "" where none is."""
    api: Any = client.api
    missing = ", ".join(sorted(getattr(api._auth_configs, "missing", ())))
    return f"; without the credentials of {missing}, which is not installed" if missing else ""


def remove_containers(client: docker.DockerClient, run: str, owner: str = "") -> int:
    """Remove the containers of a run, running ones too, of one owner alone where it is given; how many there were."""
    containers = list(_ours(client, run, owner))
    for container in containers:
        _remove(container)
    return len(containers)


def remove_images(client: docker.DockerClient, images: Iterable[Held]) -> tuple[int, tuple[str, ...]]:
    """Remove the names of these images, and what has no name once nothing is built on it.

    Returns how many went, and why others stayed: a container uses them, or an image that is not ours is built on them.
    """
    removed, kept = 0, []
    for image in sorted(images, key=lambda image: (image.kind == "standin", not image.references)):
        try:
            for name in image.references or (image.id,):
                client.images.remove(name)
            removed += 1
        except ImageNotFound:  # it went with one that was built on it
            removed += 1
        except APIError as error:
            kept.append(f"{(image.references or (image.id,))[0]}: {_first_line(error)}")
    return removed, tuple(kept)


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
        return _first_line(error)
    return ""


class ContainerObserver:
    """A load generator's container that waits for requests. Servers may join its network."""

    def __init__(self, container: Container, agent: Agent) -> None:
        self.agent = agent
        self._container = container
        self._ports = count(PORT)

    def seat(self) -> Seat:
        return Seat(self.agent, f"container:{self._container.id}", next(self._ports))

    def stop(self) -> None:
        self.agent.close()
        _remove(self._container)


class RunningContainer:
    """A server's container; `made` are the load generator's beside it, which end with it."""

    root_pid = 1

    def __init__(
        self, server: Container, agent: Agent, url: str, *, tls: bool, made: list[ContainerObserver],
        signaller: Callable[[], ContainerObserver],
    ) -> None:  # fmt: skip
        self.agent = agent
        self.url = url
        self.ca = f"{TLS}/ca.pem" if tls else None
        self._server = server
        self._made = made
        self._make_signaller = signaller

    @cached_property
    def signaller(self) -> Agent:
        self._made.append(self._make_signaller())
        return self._made[-1].agent

    def log(self) -> str:
        return bytes(self._server.logs(tail=200)).decode(errors="replace")

    def wait(self, timeout_s: float) -> Exit | None:
        deadline = time.monotonic() + timeout_s
        while (end := _end_of(self._server)) is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return end

    def stop(self) -> None:
        for agent in self._made:
            agent.stop()
        _remove(self._server)


class DockerEngine:
    """Builds images and runs servers and load generators in containers of one run."""

    def __init__(self, run: str, why: str = "", client: docker.DockerClient | None = None) -> None:
        self._client = client or connect()
        self._run = run
        self._closing = threading.Event()
        self._locks: dict[object, threading.Lock] = {}
        self._locks_lock = threading.Lock()
        self._making = threading.Lock()
        self._steps: dict[str, str] = {}  # by the image that is being built: the container of its present step
        self._bases: dict[Base, BaseFacts] = {}
        self._loadgen = ""
        version, why = str(_info(self._client)["ServerVersion"]), why + _without(self._client)
        self.facts = EngineFacts("docker", version, cpus_of(self._client), why, LIMITS)

    # --- images -----------------------------------------------------------------------------------------------

    def build(self, spec: ImageSpec, say: Say) -> BuiltImage:
        with _told_as_build_failed(spec.key.id):
            return self._found_or_built(spec, say)

    def _found_or_built(self, spec: ImageSpec, say: Say) -> BuiltImage:
        base, context, args = self._base(spec.base, say), server_context(spec.dockerfile), spec.build_args()
        bases = {"BASE": base}
        if spec.build_base:
            bases["BUILD_BASE"] = build_base = self._base(spec.build_base, say)
            base = replace(base, note=f"{base.note}; servers are built on {build_base.reference}")
        digest = context.digest(args, *(used.digest for used in bases.values()))
        tag = f"{spec.key.flavour}-{spec.key.mode}-py{spec.key.python}-{digest}"
        reference = f"{_REPOSITORY}/{spec.key.image}:{tag}"
        report = self._report(reference) if self.digest(reference) else None
        if report is None or unfinished(report):
            self._shared(spec, base, context, say)
            say(f"building {spec.key.id}")
            wanted = args | {name: used.reference for name, used in bases.items()}
            report = self._installed(context, spec.dockerfile, reference, wanted, fresh=report is not None)
        return self._made(spec, reference, base, report)

    def _installed(
        self, context: Context, dockerfile: str, reference: str, args: Mapping[str, str], *, fresh: bool
    ) -> Mapping[str, Any]:
        """Build an image and read its report. `fresh`: with an install of its own, none that the engine's cache holds.

        That may be one which ended at its time limit, and it may be there under another image's name.
        """
        began = time.monotonic()
        self._build(context, dockerfile, reference, {**args, "ATTEMPT": str(time.time_ns())} if fresh else args)
        report = self._report(reference)
        if not fresh and unfinished(report) and time.monotonic() - began < sum(report["seconds"].values()):
            return self._installed(context, dockerfile, reference, args, fresh=True)
        return report

    def prepare(self, say: Say) -> BuiltImage:
        with _told_as_build_failed("the load generator"):
            base = self._base(LOADGEN.base, say)
            context = loadgen_context()
            reference = f"{_REPOSITORY}/loadgen:{context.digest(base.digest)}"
            if self.digest(reference) is None:
                say("building the load generator")
                self._build(context, LOADGEN.dockerfile, reference, {"BASE": base.reference}, prefix="images/")
            self._loadgen = reference
            return self._made(LOADGEN, reference, base, {"outcome": "pure"})

    def _shared(self, spec: ImageSpec, base: BaseFacts, context: Context, say: Say) -> None:
        """Build what all images on a base share before any of them: builds side by side would each make their own."""
        with self._lock(("shared", base.digest)):
            reference = f"{_REPOSITORY}/shared:{context.digest(spec.dockerfile, base.digest)}"
            if self.digest(reference) is None:
                say(f"building the frameworks for {spec.key.flavour}")
                self._build(context, spec.dockerfile, reference, {"BASE": base.reference}, target="shared")

    def _build(
        self, context: Context, dockerfile: str, reference: str, args: Mapping[str, str], *, prefix: str = "",
        target: str = "", labels: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        host = host_settings()
        extra = {f"{prefix}host/ca.crt": host.ca} if host.ca else {}
        self._steps[reference] = ""
        try:
            with _told_as_build_failed(reference):
                with _readable_credentials():
                    lines = self._client.api.build(
                        fileobj=io.BytesIO(context.tar(extra)), custom_context=True, dockerfile=dockerfile,
                        tag=reference, buildargs={**host.build_args(), **args},
                        labels=dict(labels or {LABEL_KIND: "image"}), target=target, rm=True, forcerm=True,
                        decode=True, timeout=3600,
                    )  # fmt: skip
                self._follow(lines, reference)
        finally:
            self._steps.pop(reference, None)

    def _follow(self, lines: Iterable[Mapping[str, Any]], reference: str) -> None:
        """Read a build's output to its end. Raises BuildFailed with the last lines where it did not work.

        A build whose client goes away leaves the container of its step behind; one whose step fails does not. So after
        an interrupt each step is ended as it begins, and the build fails by itself.
        """
        tail: list[str] = []
        for line in lines:
            tail = [*tail, *str(line.get("stream", "")).splitlines()][-12:]
            if step := _STEP.search(str(line.get("stream", ""))):
                self._steps[reference] = step[1]
                if self._closing.is_set():
                    self._end_step(reference)
            if "error" in line:
                text = "\n    ".join(part for part in tail if part.strip())
                raise BuildFailed(
                    f"{reference}: {line['error']}\n    {text}", next_step="`matrix doctor` checks the index"
                )

    def _end_step(self, reference: str) -> None:
        with contextlib.suppress(*ENGINE_ERRORS):
            self._client.api.remove_container(self._steps[reference], force=True, v=True)

    def _report(self, reference: str) -> Mapping[str, Any]:
        """The install report that the image carries."""
        container = self._create(reference, {"command": ["true"], "labels": labels(self._run, "report")}, [])
        try:
            chunks, _ = container.get_archive(_INSTALL_REPORT)
            with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
                member = archive.extractfile(archive.getmembers()[0])
                report = json.loads(member.read() if member else b"{}")
        except (APIError, tarfile.TarError, ValueError) as error:
            raise BuildFailed(f"{reference} carries no install report: {_first_line(error)}") from error
        finally:
            _remove(container)
        return dict(report)

    def _base(self, base: Base, say: Say) -> BaseFacts:
        with self._lock(base):
            if base not in self._bases:
                self._bases[base] = find_base(self, base, say)
            return self._bases[base]

    def _lock(self, key: object) -> threading.Lock:
        with self._locks_lock:
            return self._locks.setdefault(key, threading.Lock())

    # --- what bases.find_base needs -----------------------------------------------------------------------------

    def digest(self, reference: str) -> str | None:
        try:
            return str(self._client.images.get(reference).id)
        except ImageNotFound:
            return None

    def pull(self, reference: str, silence_s: float) -> str:
        told: queue.Queue[tuple[str, str]] = queue.Queue()
        threading.Thread(target=self._pull, args=(reference, told), daemon=True).start()
        while True:
            try:
                kind, text = told.get(timeout=silence_s)
            except queue.Empty:
                return f"no answer within {silence_s:.0f} s"
            if kind != "progress":
                return text

    def _pull(self, reference: str, told: queue.Queue[tuple[str, str]]) -> None:
        repository, _, tag = reference.rpartition(":")
        try:
            with _readable_credentials():
                lines = self._client.api.pull(repository, tag, stream=True, decode=True)
            for line in lines:
                told.put(("failed", str(line["error"])) if "error" in line else ("progress", ""))
            told.put(("done", ""))
        except ENGINE_ERRORS as error:
            told.put(("failed", _first_line(error)))

    def import_rootfs(self, tar: IO[bytes], reference: str, labels: Mapping[str, str]) -> None:
        repository, _, tag = reference.rpartition(":")
        changes = [f'LABEL "{name}"="{text}"' for name, text in labels.items()]
        chunks = iter(partial(tar.read, 1 << 20), b"")  # the SDK declares chunks, and sends them for an iterator only
        with _told_as_build_failed(reference):
            self._client.api.import_image_from_stream(chunks, repository=repository, tag=tag, changes=changes)

    def build_standin(
        self, context: Context, args: Mapping[str, str], reference: str, labels: Mapping[str, str], target: str
    ) -> None:
        self._build(context, MUSL, reference, args, target=target, labels=labels)

    def _made(self, spec: ImageSpec, reference: str, base: BaseFacts, install: Mapping[str, Any]) -> BuiltImage:
        image = self._client.images.get(reference)
        return BuiltImage(spec, reference, str(image.id), base, str(image.attrs.get("Architecture", "")), install)

    # --- servers ------------------------------------------------------------------------------------------------

    def machine(self) -> Mapping[str, Any]:
        return self._machine(self.facts.cpus)

    def box(self, cpus: tuple[int, ...]) -> Box | None:
        """What the kernel gave a load generator that was to run on `cpus`; None where none can be tried, or told.

        Only with an image that is here already: nothing is built or pulled. About a second.
        """
        try:
            self._loadgen = str(self._client.images.list(f"{_REPOSITORY}/loadgen")[0].id)
            told = self._machine(cpus)
        except (*ENGINE_ERRORS, IndexError, LoadFailed):
            return None
        return Box(tuple(told.get("affinity") or ()), told.get("limits") or {})

    def _machine(self, cpus: tuple[int, ...]) -> Mapping[str, Any]:
        agent = self._agent(agent_options(self._run, cpus))
        try:
            return dict(agent.agent.ask("hello")["facts"])
        finally:
            agent.stop()

    def observe(self, placement: Placement) -> ContainerObserver:
        try:
            return self._agent(agent_options(self._run, placement.client))
        except ENGINE_ERRORS as error:
            raise ServerFailed(f"the observer: {_first_line(error)}") from error

    def start(self, launch: Launch, seat: Seat | None = None) -> RunningContainer:
        made: list[Container] = []
        beside: list[ContainerObserver] = []
        try:
            server = self._create(launch.image.reference, server_options(launch, self._run, seat), made)
            if launch.tls:
                server.put_archive(TLS, certificate().tar())
            server.start()
            if seat is None:
                beside.append(self._agent(agent_beside(launch, self._run, server.id or "")))
        except ENGINE_ERRORS as error:
            why = self._why_not_started(made, error)
            for container in made:
                _remove(container)
            raise ServerFailed(f"{launch.id}: {why}") from error
        agent = seat.agent if seat else beside[0].agent
        url = seat.url if seat else f"{'https' if launch.tls else 'http'}://127.0.0.1:{PORT}"
        return RunningContainer(
            server, agent, url, tls=launch.tls, made=beside, signaller=lambda: self._signaller(launch, server, seat)
        )

    def _signaller(self, launch: Launch, server: Container, seat: Seat | None) -> ContainerObserver:
        try:
            return self._agent(signaller_of(launch, self._run, server.id or "", seat))
        except ENGINE_ERRORS as error:
            raise ServerFailed(f"{launch.id} is gone: {_first_line(error)}") from error

    def _agent(self, options: Mapping[str, Any]) -> ContainerObserver:
        """Attach first, then start: no word of the agent is lost."""
        container = self._create(self._loadgen, options, [])
        try:
            channel = AttachedChannel(container.attach_socket(params=_ATTACH))
            container.start()
        except ENGINE_ERRORS:
            _remove(container)
            raise
        return ContainerObserver(container, Agent(channel))

    def _create(self, image: str, options: Mapping[str, Any], made: list[Container]) -> Container:
        with self._making:
            if self._closing.is_set():
                raise ServerFailed("the run was interrupted")
            container = self._client.containers.create(image, **options)
        made.append(container)
        return container

    def _why_not_started(self, made: list[Container], error: Exception) -> str:
        """A server that ended at once makes the engine complain about its namespace: its own words say more."""
        with contextlib.suppress(*ENGINE_ERRORS, IndexError):
            said = words_of(_end_of(made[0]), bytes(made[0].logs(tail=200)).decode(errors="replace"))
            if said:
                return said
        return _first_line(error)

    def close(self) -> None:
        self._closing.set()
        for reference in list(self._steps):
            self._end_step(reference)
        deadline = time.monotonic() + BUILDS_END_WITHIN_S
        while self._steps and time.monotonic() < deadline:
            time.sleep(POLL_S)
        with self._making:  # what is being made now is there to be removed; nothing is made after it
            remove_containers(self._client, self._run, owner())


@contextlib.contextmanager
def _told_as_build_failed(what: str) -> Iterator[None]:
    """What the engine or its client has to say against a build is told in its first line. Raises BuildFailed."""
    try:
        yield
    except ENGINE_ERRORS as error:
        raise BuildFailed(f"{what}: {_first_line(error)}") from error


@contextlib.contextmanager
def _readable_credentials() -> Iterator[None]:
    """Around the SDK's calls that ask credential helpers. Raises DockerException where it cannot read an answer."""
    try:
        yield
    except ENGINE_ERRORS:
        raise
    except _UNREADABLE as error:
        raise DockerException(f"what a credential helper answers cannot be read: {_first_line(error)}") from error


def _ours(client: docker.DockerClient, run: str, owner: str) -> Iterator[Container]:
    labels = [f"{LABEL_RUN}={run}", *([f"{LABEL_OWNER}={owner}"] if owner else [])]
    yield from client.containers.list(all=True, filters={"label": labels})


def _remove(container: Container) -> None:
    with contextlib.suppress(*ENGINE_ERRORS):
        container.remove(force=True, v=True)


def _end_of(server: Container) -> Exit | None:
    """How a container's process 1 ended; None while it runs, and where it never did."""
    server.reload()
    state = server.attrs["State"]
    if state["Running"] or state["Status"] == "created":
        return None
    return Exit(int(state["ExitCode"]), _wall_ns(state["FinishedAt"]), bool(state.get("OOMKilled")))


def _wall_ns(stamp: str) -> int:
    """2026-11-30T10:56:30.123456789Z in ns since 1970."""
    seconds, _, fraction = stamp.removesuffix("Z").partition(".")
    whole = int(datetime.fromisoformat(f"{seconds}+00:00").timestamp())
    return whole * 1_000_000_000 + int(fraction.ljust(9, "0")[:9] or 0)


def _first_line(error: Exception) -> str:
    text = str(getattr(error, "explanation", "") or error)
    return (text.strip().splitlines() or [type(error).__name__])[0][:300]
