"""`matrix wheels` through pip itself, from an index on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from orchestrator.images.ask_pip import MEDIA_TYPE
from orchestrator.tools.wheels import look_up, wheels_json, wheels_table

CASES = Path(__file__).parents[1] / "cases" / "simple-index"


class Index(BaseHTTPRequestHandler):
    """Recorded answers for those who accept JSON."""

    def do_GET(self) -> None:
        path = CASES / f"{self.path.strip('/').removeprefix('simple/')}.json"
        found = path.is_file() and self.headers["Accept"] == MEDIA_TYPE
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", MEDIA_TYPE)
        self.end_headers()
        self.wfile.write(path.read_bytes() if found else b"")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing to tell."""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        for name in ("PIP_EXTRA_INDEX_URL", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
        yield
        server.shutdown()


@pytest.mark.usefixtures("index")
def test_pip_asks_the_index_that_it_is_configured_with() -> None:
    found = look_up({"freastal": "0.0.3", "no-such-project": ""})
    told = wheels_json(found)["distributions"]
    assert told["freastal"]["wheels"]["glibc x86_64"] == {"cp313": "cp313", "cp314": "", "cp314t": ""}
    assert told["no-such-project"] is None
    assert wheels_table(found).row_count == 2
