"""A server of plain sockets that ends in a known way: `plain.py WAY --host H --port P`.

WAY is what SIGTERM does: answers (what is in flight, then exits 0), cuts (exits 3 at once), resets (all connections,
then exits 0), ignores (nothing), half (of the answers in flight, then exits 0).
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import struct
import threading
import time

ITEM = b'{"item_id":42,"q":null}'
RESET = struct.pack("ii", 1, 0)


class Server:
    def __init__(self, way: str, listener: socket.socket) -> None:
        self.way = way
        self.listener = listener
        self.connections: dict[socket.socket, bytes] = {}  # with the answer that is in flight

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections[connection] = b""
            threading.Thread(target=self.converse, args=(connection,), daemon=True).start()

    def converse(self, connection: socket.socket) -> None:
        with connection:
            while request := connection.recv(65536):
                self.answer(connection, request.split()[1].decode())
        self.connections.pop(connection, None)

    def answer(self, connection: socket.socket, path: str) -> None:
        milliseconds = int(path.rpartition("/")[2]) if path.startswith("/sleep/") else 0
        body = b'{"slept_ms":%d}' % milliseconds if milliseconds else ITEM
        self.connections[connection] = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        time.sleep(milliseconds / 1000)
        connection.sendall(self.connections[connection])
        self.connections[connection] = b""

    def end(self, *_: object) -> None:
        threading.Thread(target=getattr(self, self.way)).start()

    def answers(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept(2), which close(2) does not
        self.listener.close()
        for connection, answer in list(self.connections.items()):
            if not answer:
                connection.shutdown(socket.SHUT_RDWR)
        while any(self.connections.values()):
            time.sleep(0.005)
        os._exit(0)

    def cuts(self) -> None:
        os._exit(3)

    def resets(self) -> None:
        for connection in list(self.connections):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        os._exit(0)

    def half(self) -> None:
        for connection, answer in list(self.connections.items()):
            connection.sendall(answer[: len(answer) // 2])
        os._exit(0)

    def ignores(self) -> None:
        """As it says."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("way")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    given = parser.parse_args()
    server = Server(given.way, socket.create_server((given.host, given.port), backlog=16))
    signal.signal(signal.SIGTERM, server.end)
    threading.Thread(target=server.serve, daemon=True).start()
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
