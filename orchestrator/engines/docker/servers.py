"""Servers and load generators in containers of one run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from itertools import count
from typing import Any

from docker.models.containers import Container

from loadgen.contract import Hello, Machine
from orchestrator.engines.agent import Agent
from orchestrator.engines.docker.attach import AttachedChannel
from orchestrator.engines.docker.client import ENGINE_ERRORS, first_line
from orchestrator.engines.docker.housekeeping import RunContainers, remove
from orchestrator.engines.docker.options import (
    PORT,
    TLS,
    agent_beside,
    agent_options,
    server_options,
    signaller_of,
)
from orchestrator.engines.ends import Exit, words_of
from orchestrator.engines.protocol import Launch, Placement, Seat
from orchestrator.engines.tls import certificate
from orchestrator.errors import ServerFailed

POLL_S = 0.05
_ATTACH = {"stdin": 1, "stdout": 1, "stderr": 0, "stream": 1}


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
        remove(self._container)


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
        remove(self._server)


class Servers:
    """Starts servers and load generators. `loadgen` names the load generator's image, once that is known."""

    def __init__(self, containers: RunContainers) -> None:
        self.loadgen = ""
        self._containers = containers
        self._run = containers.run

    def machine(self, cpus: tuple[int, ...]) -> Machine:
        """What a load generator that is to run on `cpus` finds around it."""
        agent = self._agent(agent_options(self._run, cpus))
        try:
            return agent.agent.ask(Hello()).facts
        finally:
            agent.stop()

    def observe(self, placement: Placement) -> ContainerObserver:
        """Raises ServerFailed."""
        try:
            return self._agent(agent_options(self._run, placement.client))
        except ENGINE_ERRORS as error:
            raise ServerFailed(f"the observer: {first_line(error)}") from error

    def start(self, launch: Launch, seat: Seat | None = None) -> RunningContainer:
        """Start a server and its agent, or beside an observer. Raises ServerFailed with the server's own last words."""
        server: Container | None = None
        beside: list[ContainerObserver] = []
        try:
            server = self._containers.create(launch.image.reference, server_options(launch, self._run, seat))
            if launch.tls:
                server.put_archive(TLS, certificate().tar())
            server.start()
            if seat is None:
                beside.append(self._agent(agent_beside(launch, self._run, server.id or "")))
        except ENGINE_ERRORS as error:
            why = _why_not_started(server, error)
            if server:
                remove(server)
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
            raise ServerFailed(f"{launch.id} is gone: {first_line(error)}") from error

    def _agent(self, options: Mapping[str, Any]) -> ContainerObserver:
        """Attach first, then start: no word of the agent is lost."""
        container = self._containers.create(self.loadgen, options)
        try:
            channel = AttachedChannel(container.attach_socket(params=_ATTACH))
            container.start()
        except ENGINE_ERRORS:
            remove(container)
            raise
        return ContainerObserver(container, Agent(channel))


def _why_not_started(server: Container | None, error: Exception) -> str:
    """A server that ended at once makes the engine complain about its namespace: its own words say more."""
    with contextlib.suppress(*ENGINE_ERRORS):
        if server and (said := words_of(_end_of(server), bytes(server.logs(tail=200)).decode(errors="replace"))):
            return said
    return first_line(error)


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
