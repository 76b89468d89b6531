"""A Docker Engine as far as its first words go: it answers `_ping`, `version` and `info`, and knows nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

VERSION = {"Version": "28.0.1", "ApiVersion": "1.48", "MinAPIVersion": "1.24"}


@contextmanager
def engine_api(info: dict[str, Any]) -> Iterator[str]:
    """Serve on loopback; what DOCKER_HOST has to be. `info` without entries: the engine fails when asked for it."""
    answers: dict[str, Any] = {"_ping": "OK", "version": VERSION, "info": info}

    class Engine(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.rpartition("/")[2])
            body = json.dumps(answer or {"message": "unknown here"}).encode()
            self.send_response(200 if answer else 500)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"tcp://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
