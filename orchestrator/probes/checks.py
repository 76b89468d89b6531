"""Before any timing: the answer is right, and what runs is what was declared."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace
from packaging.utils import canonicalize_name

from loadgen.contract import Answered, Expect, Failed, Fetch, Request, Sample, TakeSample, Tls, Wait, Waited
from orchestrator.engines.agent import Agent
from orchestrator.engines.ends import telling_line, words_of
from orchestrator.engines.protocol import Running
from orchestrator.errors import CheckFailed, LoadFailed, ServerFailed
from orchestrator.matrix.models import Declares, Workload
from orchestrator.probes.answers import differing, telling_headers, words_of_answer, words_of_problem
from orchestrator.probes.fingerprint import Fingerprint, read_fingerprint
from orchestrator.probes.results import Check, Mismatch

READY_WITHIN_S = 30.0
ASKED_FOR_S = (1.0, 2.0, 4.0, 8.0, 15.0)  # READY_WITHIN_S in all
WRONG_FOR_S = 6.0
"""A server that answers, and wrongly, is asked for so long: then it will not get better. One that says that it is not
there yet, as the front of a server does whose workers start, is asked for as long as one that is silent."""
NOT_YET = (502, 503, 504)
ENDS_WITHIN_S = 2.0
"""How long an engine may take to know of an end that the load generator has already felt."""
LOG_PROBES = 12
REST_S = 0.05
RESTS = 20
REST_SHARE = 0.1
"""A tree is at rest that uses less of a CPU than this for REST_S, no thread of which wants one at its end: on a busy
machine a worker that starts may get none for so long. It is waited for RESTS times so long at most."""
NO_LOOP = "none: the app is called through WSGI"
ROUTES = "docs/apps.md lists what an app answers"


def request_of(workload: Workload, running: Running) -> Request:
    """A workload as the agent takes requests."""
    headers = (("Content-Type", "application/octet-stream"),) if workload.body else ()
    asked = _get(running, workload.path)
    return replace(asked, method=workload.method, headers=headers, body=workload.body.encode())


def check_server(running: Running, first: Workload, declares: Declares) -> Check:
    """Wait for a right answer, then look at what runs. Raises ServerFailed or LoadFailed, which say why not."""
    ready = wait_ready(running, first, running.agent)
    fingerprint, keepalive = _probe(running)
    idle = at_rest(running)  # meanwhile the last lines of an access log come to the engine
    access_log = running.log().count("logprobe") >= LOG_PROBES // 2
    mismatches, unverified = compare(declares, fingerprint, keepalive=keepalive, access_log=access_log)
    return Check(
        ready.seconds, fingerprint, mismatches, keepalive, access_log,
        idle_rss_bytes=idle.rss_bytes if idle else None, idle_pss_bytes=idle.pss_bytes if idle else None,
        unverified=unverified,
    )  # fmt: skip


def at_rest(running: Running) -> Sample | None:
    """CPU and memory of the tree once it rests: when one worker answers, others may still be starting.

    None where the load generator cannot read the processes. It takes REST_S or longer.
    """
    sample = _sample(running)
    for _ in range(RESTS):
        before = sample
        time.sleep(REST_S)
        sample = _sample(running)
        if _rested(before, sample):
            break
    return sample


def _sample(running: Running) -> Sample | None:
    answer = running.agent.call(TakeSample(pid=running.root_pid))
    return None if isinstance(answer, Failed) else answer.sample


def _rested(before: Sample | None, after: Sample | None) -> bool:
    if not before or not after:
        return True
    used_s = abs(after.cpu_s - before.cpu_s)  # a process that nobody waited for takes its own away
    grown = after.processes != before.processes
    return used_s < REST_SHARE * REST_S and not grown and not after.wanting


def wait_ready(running: Running, first: Workload, agent: Agent) -> Waited:
    """Let an agent ask until the right answer comes. Raises CheckFailed where another one does, else ServerFailed.

    It asks for a while at a time, longer each time, so that a server that has ended is not waited for.
    """
    spent = 0.0
    for while_s in ASKED_FOR_S:
        found = _wait(running, first, agent, while_s)
        spent += found.seconds
        if found.ok:
            return replace(found, seconds=spent)
        if running.wait(0.0) is not None or (_answers_wrong(found) and spent >= WRONG_FOR_S):
            break
    raise _not_ready(running, first, found, spent)


def _answers_wrong(found: Waited) -> bool:
    return found.answer is not None and found.answer.status not in NOT_YET


def _wait(running: Running, first: Workload, agent: Agent, while_s: float) -> Waited:
    call = Wait(request=request_of(first, running), expect=Expect(200, _known_body(first)), deadline_s=while_s)
    try:
        return agent.ask(call, timeout_s=while_s + 15)
    except LoadFailed as error:
        raise ended(running, error) from error


def _not_ready(running: Running, first: Workload, found: Waited, spent: float) -> ServerFailed:
    end, line = running.wait(0.0), telling_line(running.log())
    if end:
        return ServerFailed(words_of(end, running.log()))
    log = f"; its log: {line}" if line else ""
    if found.answer and (wrong := _wrong(first, found.answer)):
        return CheckFailed(f"{wrong}{log}")
    return ServerFailed(f"{words_of_problem(found.error)} for {spent:.0f} s{log}")


def ended(running: Running, error: LoadFailed) -> ServerFailed | LoadFailed:
    """The end of the server where that is why the load generator failed, else the error itself.

    In a container the server is PID 1: its end is the end of the agent in its namespace.
    """
    end = running.wait(ENDS_WITHIN_S)
    return ServerFailed(words_of(end, running.log())) if end else error


def compare(
    declares: Declares, told: Fingerprint, *, keepalive: bool, access_log: bool
) -> tuple[tuple[Mismatch, ...], tuple[str, ...]]:
    """Each declared field that is known to be another, and the names of those that could not be found out.

    A field that is not declared is not compared.
    """
    found = _found(declares, told) | {"keepalive": keepalive, "access_log": access_log}
    wanted = declares.model_dump(exclude_none=True, include=set(found))
    return tuple(_mismatches(wanted, found)), tuple(name for name in wanted if found[name] is None)


def _found(declares: Declares, told: Fingerprint) -> dict[str, object]:
    loop = told.loop or (NO_LOOP if told.interface == "wsgi" else None)
    return {"server": _server(declares.server, told), "loop": loop, "parser": told.parser,
            "worker_class": told.worker_class}  # fmt: skip


def _server(declared: str | None, told: Fingerprint) -> str | None:
    """The declared name where it is one of those that were found: names compare as package indexes compare them."""
    names = [name for name in (told.server, *told.packages) if name]
    same = declared and canonicalize_name(declared) in map(canonicalize_name, names)
    return declared if same else next(iter(names), None)


def _mismatches(wanted: Mapping[str, object], found: Mapping[str, object]) -> Iterator[Mismatch]:
    for name, value in wanted.items():
        if found[name] is not None and found[name] != value:
            yield Mismatch(name, str(value), str(found[name]))


def learn_answer(running: Running, workload: Workload) -> Expect:
    """The right answer of a workload. Raises CheckFailed where the server gives another one."""
    (answer,) = _fetch(running, [request_of(workload, running)])
    if wrong := _wrong(workload, answer):
        raise CheckFailed(wrong)
    return Expect(200, answer.body)


def _wrong(workload: Workload, answer: Answered) -> str:
    """What is wrong with the answer to a workload's request; "" where it is right."""
    return f"{workload.path}: {wrong}" if (wrong := _difference(workload, answer)) else ""


def _difference(workload: Workload, answer: Answered) -> str:
    if answer.error or answer.status != 200:
        return f"{words_of_answer(answer)}{f'; {ROUTES}' if answer.status in (404, 405) else ''}"
    if workload.expect_body is not None and answer.body != workload.expect_body.encode():
        return f"status 200, {telling_headers(answer)}{differing(answer.body, workload.expect_body.encode())}"
    if workload.expect_bytes is not None and len(answer.body) != workload.expect_bytes:
        return f"{words_of_answer(answer)}; a body of {workload.expect_bytes} bytes is expected"
    return ""


def _known_body(workload: Workload) -> bytes | None:
    return None if workload.expect_body is None else workload.expect_body.encode()


def _probe(running: Running) -> tuple[Fingerprint, bool]:
    """The fingerprint, and whether connections are kept, over LOG_PROBES requests that an access log would show."""
    probes = [_get(running, f"/items/42?logprobe={n}") for n in range(LOG_PROBES)]
    answers = _fetch(running, [*probes, _get(running, "/fingerprint")])
    if wrong := _wrong(Workload(path="/fingerprint"), answers[-1]):
        raise CheckFailed(wrong)
    return read_fingerprint(answers[-1].body), all(answer.connection_reused for answer in answers[1:])


def _get(running: Running, path: str) -> Request:
    tls = Tls(ca=running.ca, server_name="localhost") if running.ca else Tls()
    return Request(url=running.url + path, tls=tls)


def _fetch(running: Running, requests: Sequence[Request]) -> tuple[Answered, ...]:
    """One answer for each request. Raises LoadFailed, or ServerFailed where the server has ended."""
    try:
        found = running.agent.ask(Fetch(requests=tuple(requests))).answers
    except LoadFailed as error:
        raise ended(running, error) from error
    if len(found) != len(requests):
        raise LoadFailed(f"the load generator gave {len(found)} answers to {len(requests)} requests")
    return found
