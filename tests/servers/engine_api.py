"""A Docker Engine by script: it answers `_ping`, `version` and `info`, and what a test writes down for it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

VERSION = {"Version": "28.0.1", "ApiVersion": "1.48", "MinAPIVersion": "1.24"}
Answer = tuple[int, Any]
"""Status, and what is sent: bytes as they are, a Stream as a line of JSON for each item, anything else as JSON."""


class Stream(list[dict[str, str]]):
    """What a build or a pull says, bit by bit."""


@contextmanager
def engine_api(
    info: dict[str, Any], script: Mapping[str, Answer] | None = None, asked: list[str] | None = None
) -> Iterator[str]:
    """Serve on loopback; what DOCKER_HOST has to be. `info` without entries: the engine fails when asked for it.

    `script`: answers by "METHOD /path", without the version of the API; a path may be a regular expression. All
    requests are added to `asked`, with their query.
    """
    answers: dict[str, Answer] = {
        "(GET|HEAD) /_ping": (200, b"OK"),
        "GET /version": (200, VERSION),
        "GET /info": (200, info) if info else (500, {"message": "unknown here"}),
        **(script or {}),
    }

    class Engine(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._read()
            path, _, query = re.sub(r"^/v[\d.]+(?=/)", "", self.path).partition("?")
            request = f"{self.command} {path}"
            if asked is not None:
                asked.append(f"{request}?{query}" if query else request)
            found = (answer for name, answer in answers.items() if re.fullmatch(name, request))
            status, content = next(found, (500, {"message": f"not in the script: {request}"}))
            self._reply(status, content)

        do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

        def _read(self) -> None:
            """Take the whole request, or the client finds its connection closed while it writes."""
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(self.rfile.readline(), 16):
                    self.rfile.read(size + 2)
                self.rfile.readline()
            self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _reply(self, status: int, content: Any) -> None:
            body = content if isinstance(content, bytes) else _as_json(content)
            streamed = isinstance(content, Stream)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header(*(("Transfer-Encoding", "chunked") if streamed else ("Content-Length", str(len(body)))))
            self.send_header("X-Docker-Container-Path-Stat", "e30=")  # {}: what comes with an archive
            self.end_headers()
            if self.command != "HEAD" and status != 204:
                self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if streamed else body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"tcp://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _as_json(content: Any) -> bytes:
    items = content if isinstance(content, Stream) else [content]
    return "\n".join(map(json.dumps, items)).encode()
