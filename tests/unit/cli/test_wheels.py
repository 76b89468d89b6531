"""`matrix wheels`: what is looked up, and what an index may answer; once through pip itself, from a loopback index."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from orchestrator.cli.wheels import distributions, look_up, read_answers, wheels_json, wheels_table
from orchestrator.errors import EnvironmentProblem, SpecError
from orchestrator.images.ask_pip import MEDIA_TYPE
from orchestrator.images.plan import ROOT
from orchestrator.spec.loading import load_matrix

CASES = Path(__file__).parents[2] / "cases" / "simple-index"
MATRIX = load_matrix(ROOT / "matrix.yaml").matrix


def answer(name: str, status: int = 200, type_: str = MEDIA_TYPE) -> dict[str, object]:
    return {"status": status, "type": type_, "text": (CASES / f"{name}.json").read_text() if name else ""}


def test_a_server_is_looked_up_with_what_it_compiles() -> None:
    found = distributions(MATRIX, ["granian"])
    assert list(found) == ["granian", "uvloop"]
    assert found["granian"] in str(MATRIX.servers["granian"].install)
    assert found["uvloop"] == ""
    assert set(found) < set(distributions(MATRIX, ["all"]))


def test_an_unknown_server_gets_the_nearest_one() -> None:
    with pytest.raises(SpecError, match="granain") as raised:
        distributions(MATRIX, ["granain"])
    assert raised.value.nearest == "granian"


def test_a_second_index_adds_its_files() -> None:
    assert read_answers([answer("", 404), answer("uwsgi")], "2.0.31") is not None
    assert read_answers([answer("", 404)], "") is None


@pytest.mark.parametrize(
    "wrong",
    [answer("uwsgi", 503), answer("uwsgi", type_="text/html"), {"status": 200, "type": MEDIA_TYPE, "text": "{"}],
)
def test_an_index_without_the_api_is_named_as_the_trouble(wrong: dict[str, object]) -> None:
    with pytest.raises(EnvironmentProblem, match="index"):
        read_answers([wrong], "")


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
