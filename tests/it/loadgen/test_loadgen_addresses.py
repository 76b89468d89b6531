"""A name with several addresses: every part that connects takes the first that accepts, and stays with it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic_ns
from typing import Any

import pytest
from documents import Json, ask, loaded
from scripted import BODY, Behaviour, answer, answering, converse_all, once

from loadgen.contract import LoadSpec

NAME = "two.addresses.test"
ADDRESSES = {"::1": socket.AF_INET6, "127.0.0.1": socket.AF_INET}


def ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not ipv6(), reason="needs ::1")


@pytest.fixture(autouse=True)
def name(monkeypatch: pytest.MonkeyPatch) -> None:
    """`NAME` has the addresses that `localhost` has on most machines; a hosts file cannot be changed for a test."""
    real = socket.getaddrinfo

    def found(host: str, port: int, **asked: Any) -> list[Any]:
        hosts = [*ADDRESSES, "127.0.0.1"] if host == NAME else [host]
        return [entry for one in hosts for entry in real(one, port, **asked)]

    monkeypatch.setattr(socket, "getaddrinfo", found)


@contextmanager
def listening(address: str, behaviour: Behaviour, port: int = 0) -> Iterator[tuple[int, list[str]]]:
    """The port of a server on this address alone, and a list that grows with its connections."""
    accepted: list[str] = []

    def serve(conn: socket.socket) -> None:
        accepted.append(address)
        behaviour(conn)

    with socket.create_server((address, port), family=ADDRESSES[address], backlog=128) as listener:
        threading.Thread(target=converse_all, args=(listener, serve), daemon=True).start()
        yield listener.getsockname()[1], accepted


def _closed(url: str) -> bool:
    return _whole(loaded(LoadSpec(url=url, connections=3, duration_s=0.3, warmup_s=0.05)))


def _open(url: str) -> bool:
    return _whole(loaded(LoadSpec(url=url, connections=3, duration_s=0.3, loop="open", rate=100)))


def _whole(result: Json) -> bool:
    return result["requests"] > 0 and not any(result["errors"].values()) and result["connections"]["opened"] == 3


def _wait(url: str) -> bool:
    return bool(ask(op="wait", request={"url": url}, deadline_s=5)["ok"])


def _fetch(url: str) -> bool:
    answers = ask(op="fetch", requests=[{"url": url}] * 3, keep_alive=False)["answers"]
    return [found["status"] for found in answers] == [200] * 3


def _startup(url: str) -> bool:
    return bool(ask(op="startup", quick={"request": {"url": url}}, until_ns=monotonic_ns() + 5 * 10**9)["ok"])


def _watch(url: str) -> bool:
    now, asked = monotonic_ns(), {"request": {"url": url}}
    later = {"lead_ns": 10**7, "queue_ns": 10**7, "after_ns": 10**7}
    moments = {"signal_ns": now + 2 * 10**8, "until_ns": now + 4 * 10**8, **later}
    found = ask(op="watch", slow=asked, quick=asked, **moments)["connections"]
    return {name: fate["end"] for name, fate in found.items()} == {
        "slow": "answered", "queued": "answered", "idle": "open", "kept": "answered", "new": "answered",
    }  # fmt: skip


def _steady(url: str) -> bool:
    now = monotonic_ns()
    times = {"begin_ns": now, "end_ns": now + 2 * 10**8}
    found = ask(op="steady", targets=[{"request": {"url": url}}], rate=50, connections=2, **times)
    return {kind for _, _, kind in found["requests"]} == {""}


PARTS: dict[str, Callable[[str], bool]] = {
    "closed loop": _closed, "open loop": _open, "wait": _wait, "fetch": _fetch, "startup": _startup, "watch": _watch,
    "steady": _steady,
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("address", ADDRESSES)
def test_the_first_address_that_accepts_is_taken(address: str, part: str) -> None:
    with listening(address, answering(answer())) as (port, accepted):
        assert PARTS[part](f"http://{NAME}:{port}/")
    assert accepted


@pytest.mark.parametrize("part", PARTS)
def test_of_two_that_accept_the_first_is_taken(part: str) -> None:
    behaviour = answering(answer())
    with listening("::1", behaviour) as (port, first), listening("127.0.0.1", behaviour, port) as (_, second):
        assert PARTS[part](f"http://{NAME}:{port}/")
    assert first and not second


@pytest.mark.parametrize("part", ["closed loop", "open loop", "fetch", "startup", "steady"])
def test_an_address_that_accepts_later_is_not_changed_to(part: str) -> None:
    """A server on the other address comes up once the first connection is there."""
    with ExitStack() as stack:
        later: list[list[str]] = []

        def serve(conn: socket.socket) -> None:
            if not later:
                later.append([])
                later[0] = stack.enter_context(listening("::1", closing, conn.getsockname()[1]))[1]
            closing(conn)

        closing = once(answer(BODY, "connection: close"))
        port, accepted = stack.enter_context(listening("127.0.0.1", serve))
        if part.endswith("loop"):
            loop: dict[str, Any] = {"loop": "open", "rate": 100.0} if part == "open loop" else {}
            result = loaded(LoadSpec(url=f"http://{NAME}:{port}/", connections=1, duration_s=0.3, **loop))
            assert result["requests"] > 1
        else:
            assert PARTS[part](f"http://{NAME}:{port}/")
        assert len(accepted) > 1
        assert later == [[]]


def test_no_connection_is_made_that_is_not_used() -> None:
    with listening("127.0.0.1", answering(answer())) as (port, accepted):
        assert _closed(f"http://{NAME}:{port}/")
        assert len(accepted) == 3


def test_where_no_address_accepts_that_is_an_error_of_the_load() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://{NAME}:{port}/"
    assert loaded(LoadSpec(url=url, connections=2, duration_s=0.1))["errors"]["refused"] > 0
    assert ask(op="fetch", requests=[{"url": url}])["answers"][0]["error"]["kind"] == "refused"
