"""The command `loadgen`: what it sends is what was typed, and its exit code is what `--help` says of it."""

from __future__ import annotations

import re
import resource
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted import BODY, Behaviour, answer, answering, request_of, served

from loadgen import __main__ as command
from loadgen import agent, cli

SHORT = ["-c", "1", "-d", "0.2", "-w", "0"]
LOADGEN = [sys.executable, "-m", "loadgen"]


def noting(seen: list[bytes]) -> Behaviour:
    """Answer each request, and note it."""

    def serve(conn: socket.socket) -> None:
        while request := request_of(conn):
            seen.append(request)
            conn.sendall(answer())

    return serve


@pytest.fixture
def server() -> Iterator[tuple[str, list[bytes]]]:
    """The URL of a server without its last slash, and the requests that came to it."""
    seen: list[bytes] = []
    with served(noting(seen)) as url:
        yield url.rstrip("/"), seen


ENCODED = {
    "/日本/1": b"/%E6%97%A5%E6%9C%AC/1",
    "/%E6%97%A5?q=a b": b"/%E6%97%A5?q=a%20b",
    "/100%": b"/100%25",
    "?x": b"/?x",
}


@pytest.mark.parametrize("path", ENCODED)
@pytest.mark.parametrize("more", [["-H", "X-Name: é\xa0"], ["--rate", "100"], ["--processes", "1", "-X", "PURGE"]])
def test_what_is_typed_is_what_arrives(path: str, more: list[str], server: tuple[str, list[bytes]]) -> None:
    url, seen = server
    assert cli.main([url.removeprefix("http://") + path, *SHORT, *more]) == 0
    verb = b"PURGE" if "PURGE" in more else b"GET"
    assert {request.split(b"\r\n")[0] for request in seen} == {verb + b" " + ENCODED[path] + b" HTTP/1.1"}
    assert all(("X-Name: é\xa0".encode("latin-1") in request) == ("-H" in more) for request in seen)


def test_several_paths_and_single_requests_are_encoded_alike(server: tuple[str, list[bytes]]) -> None:
    url, seen = server
    assert cli.main([url, *SHORT, "-p", "/日本/1", "-p", "/a b"]) == 0
    agent.answer(f'{{"op":"fetch","requests":[{{"url":"{url}/日本/1"}},{{"url":"{url}/a b"}}]}}')
    lines = {request.split(b"\r\n")[0].split()[1] for request in (*seen[:2], *seen[-2:])}
    assert lines == {b"/%E6%97%A5%E6%9C%AC/1", b"/a%20b"}


MISUSED = {
    "a path without its slash": ["http://127.0.0.1:1", "-p", "items/42"],
    "a tab in a path": ["http://127.0.0.1:1/a\tb"],
    "bytes that are not UTF-8": ["http://127.0.0.1:1/\udcff"],
    "a field that cannot be sent": ["http://127.0.0.1:1/", "-H", "X: 日本"],
    "a field without a colon": ["http://127.0.0.1:1/", "-H", "X"],
    "a method of two words": ["http://127.0.0.1:1/", "-X", "GET /"],
    "a user": ["http://user:word@127.0.0.1:1/"],
    "a host that is not there": ["http://no.such.host.invalid/"],
    "a CA file that is not there": ["https://127.0.0.1:1/", "--ca", "/no/such/file.pem"],
    "a body file that is not there": ["http://127.0.0.1:1/", "-b", "@/no/such/file"],
    "no number": ["http://127.0.0.1:1/", "-d", "long"],
    "what another generator cannot do": ["http://127.0.0.1:1/", "--engine", "wrk", "-d", "0.5"],
    "a CPU that is not there": ["http://127.0.0.1:1/", "--cpus", "4095"],
    "an unknown option": ["http://127.0.0.1:1/", "--conections", "2"],
    "no URL": [],
    "no round": ["ceiling", "-n", "0"],
    "no time": ["ceiling", "-d", "0", "-n", "1", "-c", "1", "-b", "1"],
    "no connections": ["ceiling", "-c", "8,0"],
    "no list": ["ceiling", "-b", "23;45"],
    "less than nothing": ["null", "--body-bytes", "-1"],
    "a port that is none": ["null", "--port", "65536"],
    "a CPU that is not there, for the responder": ["null", "--cpu", "4095"],
    "a certificate that is none": ["null", "--cert", "/dev/null", "--key", "/dev/null"],
    "a certificate that is not there": ["null", "--cert", "/no/such", "--key", "/no/such"],
}


@pytest.mark.parametrize("name", MISUSED)
def test_wrong_usage_ends_with_2_and_says_where(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        command.main(MISUSED[name])
    assert left.value.code == 2
    assert ": error: " in capsys.readouterr().err


def test_bytes_of_a_body_are_sent_as_they_were_typed(server: tuple[str, list[bytes]]) -> None:
    url, seen = server
    options = cli.parser().parse_args([url, "-b", "\udcffé"])
    assert cli.spec_of(options).body == b"\xff\xc3\xa9"
    assert not seen


def test_all_right_is_0_and_findings_are_1(capsys: pytest.CaptureFixture[str]) -> None:
    with served(answering(answer())) as url:
        assert cli.main([url, *SHORT, "--expect-body", BODY.decode()]) == 0
        assert cli.main([url, *SHORT, "--expect-status", "404"]) == 1
        assert cli.main([url, *SHORT, "--expect-body", "other", "--json"]) == 1
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert cli.main([f"127.0.0.1:{port}", *SHORT]) == 1
    assert "refused" in capsys.readouterr().out


def test_another_generator_that_is_not_installed_is_3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.main(["http://127.0.0.1:1/", "-w", "0", "-d", "1", "--engine", "wrk"]) == 3


def test_a_port_that_is_taken_is_3(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert command.main(["null", "--port", str(taken.getsockname()[1])]) == 3
    assert "in use" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--processes", "2"]])
def test_too_few_open_files_are_3_and_no_fault_of_the_server(more: list[str]) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))

    with served(answering(answer())) as url:
        done = subprocess.run(
            [*LOADGEN, url, "-c", "100", "-d", "0.2", *more],
            capture_output=True, text=True, check=False, preexec_fn=limited, timeout=60,
        )  # fmt: skip
    assert done.returncode == 3, done.stdout
    assert "ulimit -n" in done.stderr


def test_an_interrupt_is_130() -> None:
    def interruptible() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    seen: list[bytes] = []
    with (
        served(noting(seen)) as url,
        subprocess.Popen([*LOADGEN, url, "-d", "60"], preexec_fn=interruptible, stdout=subprocess.PIPE) as process,
    ):
        while len(seen) < 10:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_the_help_tells_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        command.main(["--help"])
    assert left.value.code == 0
    printed = capsys.readouterr().out
    codes = printed.partition("exit codes:\n")[2].splitlines()
    assert [line.split()[0] for line in codes] == ["0", "1", "2", "3", "130"]


def test_the_examples_of_the_help_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("body.json", "answer.json"):
        (tmp_path / name).write_text("{}")
    lines = cli.EPILOG.partition("\n\n")[0].splitlines()[1:]
    specs = [cli.spec_of(cli.parser().parse_args(shlex.split(re.split("   +", line.strip())[0])[1:])) for line in lines]
    assert [spec.url for spec in specs] == [
        "http://localhost:8000/items/42", "http://localhost:8000/", "http://localhost:8000/",
        "http://localhost:8000/echo", "https://localhost:8443/",
    ]  # fmt: skip
    assert [path.path for path in specs[2].paths] == ["/items/1", "/find?q=a%20b"]
