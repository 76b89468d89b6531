"""A server that is right until it is told otherwise: `odd.py HOST PORT MODE`. It needs the standard library alone.

It answers /items/42 and /fingerprint; MODE says what it does in the place of that.
"""

from __future__ import annotations

import ctypes
import gzip
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ITEM = b'{"item_id":42,"q":null}'
PATIENCE = 50
"""Requests that it answers before it dies: more than any check asks for."""
HOST, PORT, MODE = sys.argv[1], int(sys.argv[2]), sys.argv[3]
seen: list[str] = []
hoard: list[bytes] = []


def die() -> None:
    if MODE == "dies":
        os.write(1, b"RuntimeError: the pool is empty\n")
        os._exit(3)
    if MODE == "segfault":  # a real one: process 1 of a container does not hear a signal that it has no handler for
        ctypes.string_at(0)
    while MODE == "hoard":
        hoard.append(b"x" * (16 << 20))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one segment

    def do_GET(self) -> None:
        seen.append(self.path)
        if len(seen) > PATIENCE:
            die()
        if self.path == "/fingerprint":
            told: object = {"list": [], "null": None}.get(MODE, {"server": "odd", "python": "3"})
            self._reply(404 if MODE == "bare" else 200, b"Not Found" if MODE == "bare" else json.dumps(told).encode())
        elif MODE == "500":
            self._reply(500, b"Oops: no database")
        elif MODE == "gzip":
            self._reply(200, gzip.compress(ITEM), ("Content-Encoding", "gzip"))
        elif MODE == "304":
            self._reply(304, b"")
        elif MODE == "moved":
            self._reply(302, b"", ("Location", "https://127.0.0.1/items/42"))
        elif MODE == "wrong":
            self._reply(200, b'{"item_id": 42, "q": null}')
        elif MODE == "routeless":
            self._reply(404, b"Not Found")
        else:
            self._reply(200, ITEM)

    def _reply(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


if __name__ == "__main__":
    if MODE == "exits":
        sys.exit("ValueError: no such worker: 'nope'")
    print("odd: serving, with 0 errors so far", flush=True)
    ThreadingHTTPServer.request_queue_size = 128
    ThreadingHTTPServer((HOST, PORT), Handler).serve_forever()
