"""The null responder: the least a server can do, to find what the generator itself can do.

It answers each read that ends a request head with the same bytes. It reads no headers, so it is right
only for requests without a body that come one at a time, which is what the ceiling asks.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from loadgen.poller import system_poller


def answer_bytes(body: bytes) -> bytes:
    """The whole answer that carries `body`."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def serve(listener: socket.socket, body: bytes) -> None:
    """Serve until the process ends."""
    poller = system_poller()
    listener.setblocking(False)
    poller.add(listener.fileno(), write=False)
    answer = answer_bytes(body)
    recv: dict[int, Callable[[int], bytes]] = {}
    send: dict[int, Callable[[bytes], None]] = {}
    socks: dict[int, socket.socket] = {}
    while True:
        for fd, _ in poller.wait(3600):
            if fd == listener.fileno():
                sock, _peer = listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                poller.add(sock.fileno(), write=False)
                socks[sock.fileno()], recv[sock.fileno()], send[sock.fileno()] = sock, sock.recv, sock.sendall
                continue
            try:
                data = recv[fd](4096)
                if data.endswith(b"\r\n\r\n"):
                    send[fd](answer)
            except OSError:
                data = b""
            if not data:
                del recv[fd], send[fd]
                socks.pop(fd).close()
