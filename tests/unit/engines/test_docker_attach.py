"""The attach stream gives back the lines that were sent, however it cuts them into frames and reads."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engines.docker.attach import AttachedChannel

LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), min_size=1)


def frame(data: bytes) -> bytes:
    return struct.pack(">B3xL", 1, len(data)) + data


@given(LINES, st.integers(1, 40))
def test_lines_come_back_whole(lines: list[str], size: int) -> None:
    text = "".join(f"{line}\n" for line in lines).encode()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"".join(frame(text[at : at + size]) for at in range(0, len(text), size)))
        channel = AttachedChannel(ours)
        assert [channel.receive(1.0) for _ in lines] == lines


def test_an_end_in_the_middle_of_a_frame_is_an_error() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.sendall(frame(b"half a line\n")[:12])
        theirs.close()
        with pytest.raises(ConnectionResetError):
            AttachedChannel(ours).receive(1.0)


def test_silence_is_a_time_out() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError):
        AttachedChannel(ours).receive(0.01)


def test_what_is_sent_ends_its_line() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        AttachedChannel(ours).send('{"op":"hello"}')
        assert theirs.recv(100) == b'{"op":"hello"}\n'
