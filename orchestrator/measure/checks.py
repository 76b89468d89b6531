"""Before any timing: the answer is right, and what runs is what was declared."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.engines.agent import Agent, Answer
from orchestrator.engines.protocol import Running
from orchestrator.errors import LoadFailed, ServerFailed
from orchestrator.measure.results import Check, Mismatch
from orchestrator.spec.models import Declares, Workload

READY_WITHIN_S = 30.0
ASKED_FOR_S = (1.0, 2.0, 4.0, 8.0, 15.0)  # READY_WITHIN_S in all
LOG_PROBES = 12
REST_S = 0.05
RESTS = 20
REST_SHARE = 0.1
"""A tree is at rest that uses less of a CPU than this for REST_S, no thread of which wants one at its end: on a busy
machine a worker that starts may get none for so long. It is waited for RESTS times so long at most."""
_PROBED = ("server", "loop", "parser", "worker_class")


@dataclass(frozen=True)
class Expected:
    """The one right answer to a workload's request."""

    status: int
    body: bytes

    def as_json(self) -> dict[str, Any]:
        return {"status": self.status, "body": base64.b64encode(self.body).decode()}


def request_of(workload: Workload, running: Running) -> dict[str, Any]:
    """A workload as the agent takes requests."""
    body = base64.b64encode(workload.body.encode()).decode()
    headers = [["Content-Type", "application/octet-stream"]] if workload.body else []
    return _get(running, workload.path) | {"method": workload.method, "headers": headers, "body": body}


def check_server(running: Running, first: Workload, declares: Declares) -> Check:
    """Wait for a right answer, then look at what runs. Raises ServerFailed with the server's own words."""
    answer = wait_ready(running, first, running.agent)
    fingerprint, keepalive, probes = _probe(running)
    idle = at_rest(running)  # meanwhile the last lines of an access log come to the engine
    access_log = running.log().count("logprobe") >= probes // 2
    found = {**{name: fingerprint.get(name) for name in _PROBED}, "keepalive": keepalive, "access_log": access_log}
    return Check(
        float(answer["seconds"]), fingerprint, compare(declares, found), keepalive, access_log,
        idle_rss_bytes=idle.get("rss_bytes"), idle_pss_bytes=idle.get("pss_bytes"),
    )  # fmt: skip


def at_rest(running: Running) -> Mapping[str, Any]:
    """CPU and memory of the tree once it rests: when one worker answers, others may still be starting.

    The load generator's `sample`; empty where it cannot read the processes. It takes REST_S or longer.
    """
    sample = _sample(running)
    for _ in range(RESTS):
        before = sample
        time.sleep(REST_S)
        sample = _sample(running)
        if _rested(before, sample):
            break
    return sample


def _sample(running: Running) -> Mapping[str, Any]:
    answer = running.agent.call("sample", pid=running.root_pid)
    return dict(answer.get("sample") or {})


def _rested(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    if not before or not after:
        return True
    used_s = abs(float(after["cpu_s"]) - before["cpu_s"])  # a process that nobody waited for takes its own away
    grown = after["processes"] != before["processes"]
    return used_s < REST_SHARE * REST_S and not grown and not after["wanting"]


def wait_ready(running: Running, first: Workload, agent: Agent) -> Answer:
    """Let an agent ask until the right answer comes. Raises ServerFailed with the server's own words.

    It asks for a while at a time, longer each time, so that a server that has ended is not waited for.
    """
    answer: Answer = {}
    spent = 0.0
    for while_s in ASKED_FOR_S:
        answer = _wait(running, first, agent, while_s)
        spent += float(answer["seconds"])
        if answer.get("ok"):
            return answer | {"seconds": spent}
        if running.exit_code() is not None:
            break
    raise ServerFailed(_why_not_ready(running, answer, spent))


def _wait(running: Running, first: Workload, agent: Agent, while_s: float) -> Answer:
    request, expect = request_of(first, running), {"status": 200, "body": _known_body(first)}
    try:
        return agent.call("wait", request=request, expect=expect, deadline_s=while_s, timeout_s=while_s + 15)
    except LoadFailed as error:
        if running.exit_code() is None:
            raise
        # In a container the server is PID 1: its end is the end of the agent in its namespace.
        raise ServerFailed(_last_words(running, error.what)) from error


def compare(declares: Declares, found: Mapping[str, Any]) -> tuple[Mismatch, ...]:
    """Each declared field that differs from what was found; a field that is not declared is not compared."""
    wanted = declares.model_dump(exclude_none=True)
    return tuple(
        Mismatch(name, str(value), str(found.get(name))) for name, value in wanted.items() if found.get(name) != value
    )


def learn_answer(running: Running, workload: Workload) -> Expected:
    """The right answer of a workload. Raises ServerFailed where the server gives another one."""
    (answer,) = _fetch(running, [request_of(workload, running)])
    if answer.get("error") or answer.get("status") != 200:
        raise ServerFailed(f"{workload.path}: {answer.get('error') or answer.get('status')}")
    body = base64.b64decode(answer["body"])
    if workload.expect_body is not None and body != workload.expect_body.encode():
        raise ServerFailed(f"{workload.path}: answered {body[:60]!r}, not {workload.expect_body!r}")
    if workload.expect_bytes is not None and len(body) != workload.expect_bytes:
        raise ServerFailed(f"{workload.path}: answered {len(body)} bytes, not {workload.expect_bytes}")
    return Expected(200, body)


def _known_body(workload: Workload) -> str | None:
    return None if workload.expect_body is None else base64.b64encode(workload.expect_body.encode()).decode()


def _probe(running: Running) -> tuple[dict[str, Any], bool, int]:
    """The fingerprint, whether connections are kept, and how many requests the log could show."""
    probes = [_get(running, f"/items/42?logprobe={n}") for n in range(LOG_PROBES)]
    answers = _fetch(running, [*probes, _get(running, "/fingerprint")])
    last = answers[-1]
    if last.get("error") or last.get("status") != 200:
        raise ServerFailed(f"/fingerprint: {last.get('error') or last.get('status')}")
    fingerprint = json.loads(base64.b64decode(last["body"]))
    keepalive = all(answer.get("connection_reused") for answer in answers[1:])
    return fingerprint, keepalive, LOG_PROBES


def _get(running: Running, path: str) -> dict[str, Any]:
    request = {"method": "GET", "url": running.url + path}
    return request | ({"tls": {"ca": running.ca, "server_name": "localhost"}} if running.ca else {})


def _fetch(running: Running, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    answer = running.agent.ask("fetch", requests=list(requests), keep_alive=True)
    return list(answer["answers"])


def _why_not_ready(running: Running, answer: Mapping[str, Any], spent: float) -> str:
    error, wrong = answer.get("error") or {}, answer.get("answer") or {}
    seen = error.get("detail") or error.get("message") or (f"status {wrong['status']}" if wrong else "no answer")
    return _last_words(running, f"{seen} within {spent:.0f} s")


def _last_words(running: Running, seen: str) -> str:
    """Those of the server where it said any, else what was seen of it."""
    code = running.exit_code()
    ended = "" if code is None else f"ended with exit code {code}: "
    lines = [line.strip() for line in running.log().splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() or "not found" in line.lower()]
    return ended + (telling or lines or [seen])[-1][:300]
