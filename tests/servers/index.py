"""A package index on loopback with the simple JSON API (PEP 691): recorded answers, and ways to differ from it."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from orchestrator.images.index import MEDIA_TYPE

CASES = Path(__file__).parents[1] / "cases" / "simple-index"


@dataclass
class Index:
    """How an index answers. `moved_to`: it redirects there; `login`: user:password that it asks for; `busy`: so many
    requests get 503 first; `silent`: it takes requests and never answers. `asked` are the paths of requests."""

    html: bool = False
    moved_to: str = ""
    login: str = ""
    busy: int = 0
    silent: bool = False
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str, accept: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body for a request."""
        self.asked.append(path)
        if len(self.asked) <= self.busy:
            return 503, {}, b""
        if self.moved_to:
            return 301, {"Location": self.moved_to + path}, b""
        if self.login and authorization != f"Basic {base64.b64encode(self.login.encode()).decode()}":
            return 401, {"WWW-Authenticate": "Basic"}, b""
        file = CASES / f"{path.strip('/').removeprefix('simple/')}.json"
        if not file.is_file() or MEDIA_TYPE not in accept:
            return 404, {}, b""
        return 200, {"Content-Type": "text/html" if self.html else MEDIA_TYPE}, file.read_bytes()


@contextmanager
def serving(index: Index) -> Iterator[Index]:
    """Serve it, with its address in `url`."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if index.silent:
                over.wait(60)
                return
            headers = self.headers
            status, told, body = index.answer(self.path, headers.get("Accept", ""), headers.get("Authorization", ""))
            self.send_response(status)
            for name, text in told.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing to tell."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    index.url = f"http://127.0.0.1:{server.server_port}/simple"
    try:
        yield index
    finally:
        over.set()
        server.shutdown()
        server.server_close()
