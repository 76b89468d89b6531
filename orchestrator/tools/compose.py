"""A matrix as a Compose file, so that any server can be started by hand in the same box and put under load.

The result works with Compose v2 and with docker-compose 1.29. It holds two services for each image: the server,
and `loadgen-` with the same name, which joins the server's network and PID namespaces. A profile of the server's
name holds both, so that `up` without a name starts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import yaml

from orchestrator.engines.docker.options import LABEL_OWNER, PORT, agent_options, server_options
from orchestrator.engines.protocol import Launch, Placement
from orchestrator.images.plan import Base, BaseFacts, BuiltImage, ImageSpec, image_of
from orchestrator.matrix.cell import Cell, ImageKey
from orchestrator.matrix.models import Matrix

RUN = "compose"
"""What the label of a run says on containers that people start."""

FROM_ENVIRONMENT = (
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
)  # fmt: skip
"""Build arguments that Compose takes from the environment of whoever builds: they may hold secrets."""

HEADER = """\
# Written by `matrix compose`. One server by hand, and a second of load on it (docker-compose 1.29: with a hyphen):
#   docker compose -f THIS up --build -d NAME
#   echo '{{"op":"load","spec":{{"url":"http://127.0.0.1:{port}/items/42","connections":8,"duration_s":1}}}}' |
#     docker compose -f THIS run --rm -T loadgen-NAME
#   docker compose -f THIS --profile NAME down
"""

Service = dict[str, Any]


def compose_file(
    matrix: Matrix, cells: Iterable[Cell], placement: Placement, bases: Mapping[Base, str] | None = None
) -> dict[str, Any]:
    """The Compose file of all images that `cells` need, each started as the first of its cells, without TLS.

    `bases` gives the reference of the base image that is really there; without it a base is the official one.
    Paths are relative to the project's folder, so the file belongs there.
    """
    first: dict[ImageKey, Cell] = {}
    for cell in cells:
        first.setdefault(cell.image, cell)
    services: dict[str, Service] = {}
    for key, cell in first.items():
        name = service_name(key)
        spec = image_of(matrix, cell)
        services[name] = _server(matrix, cell.only(tls=False), spec, bases or {}, placement)
        services[f"loadgen-{name}"] = _loadgen(name, base_of_loadgen(bases or {}), placement)
    return {"services": services}


def as_yaml(file: Mapping[str, Any]) -> str:
    """The text of a Compose file, with how to use it on top."""
    return HEADER.format(port=PORT) + yaml.safe_dump(dict(file), sort_keys=False, width=120)


def service_name(key: ImageKey) -> str:
    """`granian-slim-wheel-py3.13`."""
    return "-".join((key.image, key.flavour, key.mode, f"py{key.python}"))


def base_of_loadgen(bases: Mapping[Base, str]) -> str | None:
    """Any base with Python 3 will do for the load generator: slim's where it is known. None: its Dockerfile's own."""
    return next((reference for base, reference in bases.items() if base.flavour.startswith("slim")), None)


def _server(matrix: Matrix, cell: Cell, spec: ImageSpec, bases: Mapping[Base, str], placement: Placement) -> Service:
    name = service_name(spec.key)
    base = bases.get(spec.base, spec.base.official)
    reference = f"appserver-matrix/{RUN}:{name}"
    image = BuiltImage(spec, reference, "", BaseFacts(base, "", "", ""), "", {})
    module = matrix.apps[cell.app].module
    launch = Launch(
        cell.launch_id, image, cell.variant, module, cell.workers, cell.threads, tls=False, placement=placement
    )
    arguments = {"BASE": base} | {name: text for name, text in spec.build_args().items() if text}
    if spec.build_base:
        arguments["BUILD_BASE"] = bases.get(spec.build_base, spec.build_base.official)
    build: dict[str, Any] = {
        "context": "./images",
        "dockerfile": spec.dockerfile,
        **({"target": spec.target} if spec.target else {}),
        "args": _escaped(arguments) | dict.fromkeys(FROM_ENVIRONMENT),
    }
    return {"image": reference, "build": build, "profiles": [name], **_options(server_options(launch, RUN))}


def _loadgen(server: str, base: str | None, placement: Placement) -> Service:
    options = agent_options(RUN, placement.client) | {
        "network_mode": f"service:{server}",
        "pid_mode": f"service:{server}",
    }
    build: dict[str, Any] = {"context": ".", "dockerfile": "images/loadgen/Dockerfile"}
    if base:
        build["args"] = {"BASE": base}
    return {"image": f"appserver-matrix/{RUN}:loadgen", "build": build, "profiles": [server], **_options(options)}


def _options(options: Mapping[str, Any]) -> Service:
    """Options of the Docker SDK under Compose's names. KeyError for one that has no name here: none gets lost."""
    service: Service = {}
    for name, value in options.items():
        field, translate = _FIELDS[name]
        if value not in ([], None):
            service[field] = _escaped(translate(value))
    return service


def _escaped(value: Any) -> Any:
    """Compose reads `$` as the start of a variable."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    if isinstance(value, dict):
        return {name: _escaped(item) for name, item in value.items()}
    return value


def _same(value: Any) -> Any:
    return value


def _tmpfs(mounts: Mapping[str, str]) -> list[str]:
    return [f"{path}:{options}" for path, options in mounts.items()]


def _logging(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"driver": config["Type"], "options": dict(config["Config"])}


def _labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Without the owner: the process that wrote the file does not own what people start from it."""
    return {name: text for name, text in labels.items() if name != LABEL_OWNER}


_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **{name: (name, _same) for name in (
        "user", "cap_drop", "security_opt", "read_only", "init", "command", "entrypoint", "environment",
        "network_mode", "mem_limit", "memswap_limit", "pids_limit", "stdin_open", "volumes", "volumes_from",
    )},
    "pid_mode": ("pid", _same),
    "cpuset_cpus": ("cpuset", _same),
    "tmpfs": ("tmpfs", _tmpfs),
    "log_config": ("logging", _logging),
    "labels": ("labels", _labels),
}  # fmt: skip
