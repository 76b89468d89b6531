"""How containers are boxed in: the options of server and load generator containers, as data.

Measured here: every server of the catalogue runs without network, capabilities and a writable root; one that
cannot says so in its entry.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.engines.protocol import Launch, Limits, Seat, Side, server_environment

PORT = 8000
LABEL_RUN = "appserver-matrix.run"
LABEL_KIND = "appserver-matrix.kind"
LABEL_OWNER = "appserver-matrix.owner"
APPS, VENV, TMP, TLS = "/opt/apps", "/opt/venv", "/tmp", "/opt/tls"

LIMITS: Mapping[Side, Limits] = {
    "server": Limits(memory_bytes=3 << 30, swap_bytes=0, pids=1024),
    "client": Limits(memory_bytes=2 << 30, swap_bytes=0, pids=256),
}
_BOXED: dict[str, Any] = {
    "user": "1000:1000",
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
    "read_only": True,
    # exec: mod_wsgi-express writes the script that it then starts.
    "tmpfs": {TMP: "rw,exec,nosuid,nodev,size=256m,mode=1777"},
    "log_config": {"Type": "json-file", "Config": {"max-size": "4m", "max-file": "1"}},
    "init": False,
}


def owner() -> str:
    """Host and process that made a container, so that what a killed run left can be told from a live one's."""
    return f"{socket.gethostname()}:{os.getpid()}"


def labels(run: str, kind: str) -> dict[str, str]:
    return {LABEL_RUN: run, LABEL_KIND: kind, LABEL_OWNER: owner()}


def cpuset(cpus: Iterable[int]) -> str:
    return ",".join(str(cpu) for cpu in cpus)


def _limited(limits: Limits) -> dict[str, Any]:
    """The engine's limit of swap is one of memory and swap together."""
    return {
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes + limits.swap_bytes,
        "pids_limit": limits.pids,
    }


def server_options(launch: Launch, run: str, seat: Seat | None = None) -> dict[str, Any]:
    """Options of a server's container: only loopback exists in it. PID 1 is the server.

    It owns its namespaces; beside an observer, the network is that one's.
    """
    port, network = (seat.port, seat.network) if seat else (PORT, "none")
    return _BOXED | {
        "command": list(launch.argv(host="127.0.0.1", port=port, apps=APPS, venv=VENV, tmp=TMP, tls=TLS)),
        "entrypoint": [],
        "environment": server_environment(launch.variant, apps=APPS, tmp=TMP),
        "network_mode": network,
        "cpuset_cpus": cpuset(launch.placement.server),
        **_limited(LIMITS["server"]),
        "volumes": [TLS] if launch.tls else [],
        "labels": labels(run, "server"),
    }


def agent_options(run: str, cpus: Iterable[int]) -> dict[str, Any]:
    """Options of a load generator's container that waits for requests on its standard input."""
    return _BOXED | {
        "command": ["agent"],
        "network_mode": "none",
        "cpuset_cpus": cpuset(cpus),
        **_limited(LIMITS["client"]),
        "stdin_open": True,
        "labels": labels(run, "agent"),
    }


def agent_beside(launch: Launch, run: str, server_id: str) -> dict[str, Any]:
    """The same beside a server: it joins the server's network and PID namespaces, and sees its certificate."""
    return agent_options(run, launch.placement.client) | {
        "network_mode": f"container:{server_id}",
        "pid_mode": f"container:{server_id}",
        "volumes_from": [server_id] if launch.tls else [],
    }


def signaller_of(launch: Launch, run: str, server_id: str, seat: Seat | None) -> dict[str, Any]:
    """The same in the server's PID namespace, and in an observer's network where there is one."""
    network = seat.network if seat else "none"
    return agent_options(run, launch.placement.client) | {
        "pid_mode": f"container:{server_id}",
        "network_mode": network,
    }
