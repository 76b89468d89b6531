"""The agent, a slice and the proc sampler, against a real null responder on loopback."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import jsonschema
import pytest
from documents import ask

from loadgen import agent, cli, proc
from loadgen.contract import Failed, schemas

BODY = b"x" * 23
SCHEMA = schemas()["load-result"]
RIGHT = {"status": 200, "body": base64.b64encode(BODY).decode()}


@pytest.fixture(scope="module")
def responder() -> Iterator[tuple[str, int]]:
    """(URL, process id) of a null responder."""
    command = [sys.executable, "-m", "loadgen", "null", "--body-bytes", "23"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/", process.pid
        process.kill()


def test_hello_tells_facts() -> None:
    answer = ask(op="hello")
    assert answer["schema"] == "loadgen/1"
    assert answer["facts"]["cpus_online"] == os.cpu_count()
    assert answer["facts"]["python"] == sys.version.split()[0]


def test_wait_sees_the_right_answer(responder: tuple[str, int]) -> None:
    answer = ask(op="wait", request={"url": responder[0]}, expect=RIGHT, deadline_s=5)
    assert answer["ok"]
    assert 0 < answer["connect_s"] <= answer["seconds"]
    assert base64.b64decode(answer["answer"]["body"]) == BODY


def test_wait_tells_what_it_saw_last(responder: tuple[str, int]) -> None:
    answer = ask(op="wait", request={"url": responder[0]}, expect={"status": 404}, deadline_s=0.05)
    assert not answer["ok"]
    assert answer["answer"]["status"] == 200
    answer = ask(op="wait", request={"url": "http://127.0.0.1:1/"}, deadline_s=0.05)
    assert answer["error"]["kind"] == "refused"
    assert answer["attempts"] > 1


def test_fetch_keeps_the_connection(responder: tuple[str, int]) -> None:
    requests = [{"url": responder[0]}, {"url": responder[0] + "other"}]
    kept = ask(op="fetch", requests=requests)["answers"]
    assert [answer["connection_reused"] for answer in kept] == [False, True]
    apart = ask(op="fetch", requests=requests, keep_alive=False)["answers"]
    assert [answer["connection_reused"] for answer in apart] == [False, False]
    assert ["content-length", "23"] in kept[0]["headers"]


def test_load_gives_a_result_that_fits_the_schema(responder: tuple[str, int]) -> None:
    url, pid = responder
    spec = {"url": url, "connections": 3, "duration_s": 0.15, "warmup_s": 0.03, "expect": RIGHT, "watch_pid": pid}
    result = ask(op="load", spec=spec)["result"]
    jsonschema.validate(result, SCHEMA)
    assert result["requests"] == result["latency"]["count"] == sum(result["per_100ms"]) > 0
    assert not any(result["errors"].values())
    assert result["connections"] == {"opened": 3, "reconnects": 0, "per_request": 0, "resent": 0}
    answer_size = len(f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(BODY)}\r\n\r\n") + 23
    assert 0 <= result["bytes"]["received"] - result["requests"] * answer_size <= 3 * answer_size
    if proc.available():
        assert result["server"]["processes"] == 1
        assert result["server"]["cpu_s"] > 0


def test_load_in_an_open_loop(responder: tuple[str, int]) -> None:
    spec = {"url": responder[0], "connections": 4, "duration_s": 0.2, "loop": "open", "rate": 500, "expect": RIGHT}
    result = ask(op="load", spec=spec)["result"]
    jsonschema.validate(result, SCHEMA)
    assert result["requests"] == result["service"]["count"] == 100
    assert result["service"]["mean"] <= result["latency"]["mean"]


def test_load_in_two_processes(responder: tuple[str, int]) -> None:
    spec = {"url": responder[0], "connections": 3, "processes": 2, "duration_s": 0.1, "expect": RIGHT}
    result = ask(op="load", spec=spec)["result"]
    jsonschema.validate(result, SCHEMA)
    assert result["connections"]["opened"] == 3
    assert result["requests"] == result["latency"]["count"] > 0


def test_load_of_several_paths_counts_each_wrong_one(responder: tuple[str, int]) -> None:
    paths = [{"path": "/a"}, {"path": "/b", "expect": {"status": 404}}]
    result = ask(op="load", spec={"url": responder[0], "paths": paths, "duration_s": 0.1})["result"]
    assert abs(result["requests"] - result["errors"]["status"]) <= 1


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("nonsense", "json"),
        ("[]", "spec"),
        ('{"op":"lood"}', "spec"),
        ('{"op":"load"}', "spec"),
        ('{"op":"load","spec":{"url":"http://127.0.0.1:1/","connections":-1}}', "spec"),
        ('{"op":"load","spec":{"url":"http://no.such.host.invalid/"}}', "spec"),
        ('{"op":"fetch","requests":{}}', "spec"),
        ('{"op":"fetch","requests":[{"url":"x"}]}', "spec"),
        ('{"op":"wait","deadline_s":0}', "spec"),
        ('{"op":"sample","pid":4194305}', "spec"),
    ],
)
def test_a_mistake_is_an_answer(line: str, kind: str) -> None:
    answer = agent.answer(line)
    assert isinstance(answer, Failed)
    assert not answer.ok
    assert answer.error.kind == kind


def test_the_agent_goes_on_after_a_mistake_and_ends_at_bye() -> None:
    out = io.StringIO()
    agent.serve(iter(["nonsense\n", "\n", '{"op":"hello"}\n', '{"op":"bye"}\n', '{"op":"hello"}\n']), out)
    assert [json.loads(line)["ok"] for line in out.getvalue().splitlines()] == [False, True]


@pytest.mark.skipif(not proc.available(), reason="needs Linux's /proc")
def test_the_tree_holds_children_and_their_cpu_time() -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        deadline = time.monotonic() + 5
        while len(pids := proc.tree(process.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        before = proc.usage(pids)
        time.sleep(0.05)
        os.kill(pids[1], 9)
        process.wait()
    assert pids[0] == process.pid
    assert [usage.cpu_ns > 0 for usage in before.values()] == [True, True]
    assert proc.tree(process.pid) == ()


@pytest.mark.skipif(not proc.available(), reason="needs Linux's /proc")
def test_cpu_time_of_ended_threads_counts() -> None:
    script = (
        "import threading, time\n"
        "t = threading.Thread(target=sum, args=(range(3_000_000),)); t.start(); t.join()\n"
        "print(time.process_time(), flush=True); time.sleep(9)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = float(process.stdout.readline())
        sample = ask(op="sample", pid=process.pid)["sample"]
        process.kill()
    assert sample["cpu_s"] >= told
    assert sample["cpu_s"] == pytest.approx(told, abs=0.05)


@pytest.mark.skipif(not proc.available(), reason="needs Linux's /proc")
@pytest.mark.parametrize(("script", "wanting"), [("while True: pass", 1), ("import time; time.sleep(9)", 0)])
def test_threads_that_want_a_cpu(script: str, wanting: int) -> None:
    """A process that has begun wants one; a sleeping one is at rest after a while."""
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        until = time.monotonic() + 5
        while (found := ask(op="sample", pid=process.pid)["sample"])["wanting"] != wanting and time.monotonic() < until:
            time.sleep(0.02)
        process.kill()
    assert found["wanting"] == wanting


def test_command_line(responder: tuple[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [responder[0], "-c", "2", "-d", "0.1", "-w", "0", "--expect-body", BODY.decode()]
    assert cli.main(arguments) == 0
    assert "throughput" in capsys.readouterr().out
    assert cli.main([*arguments, "--json"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), SCHEMA)
    assert cli.main([*arguments[:-1], "y" * 23]) == 1
    assert "wrong_body" in capsys.readouterr().out
    with pytest.raises(SystemExit) as left:
        cli.main([responder[0], "-c", "0"])
    assert left.value.code == 2
