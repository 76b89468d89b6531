"""The repository's own matrix.yaml: every server is there, every command is whole, every suite has cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.engines.protocol import Launch, Placement
from orchestrator.images.plan import BaseFacts, BuiltImage, image_of
from orchestrator.matrix.cell import Cell
from orchestrator.matrix.expand import expand
from orchestrator.matrix.loading import load_matrix
from orchestrator.matrix.resolved import Variant, catalogue
from orchestrator.probes.load.measure import load_seconds

ROOT = Path(__file__).parents[3]
MATRIX = load_matrix(ROOT / "matrix.yaml").matrix
VARIANTS = {variant.name: variant for variant in catalogue(MATRIX)}
SERVERS = """
    uvicorn/bare uvicorn/standard gunicorn/sync gunicorn/gthread gunicorn/uvicorn-worker gunicorn/asgi granian/wsgi
    granian/asgi granian/rsgi hypercorn/asyncio daphne/twisted waitress/threads uwsgi/source uwsgi/pyuwsgi
    cheroot/threads socketify/asgi bjoern/script meinheld/gunicorn-worker mod-wsgi/express freastal/wsgi freastal/asgi
    fastapi-cli/run
""".split()  # noqa: SIM905


@pytest.mark.parametrize("name", SERVERS)
def test_server_is_in_the_catalogue(name: str) -> None:
    assert name in VARIANTS


def test_servers_that_scale_by_workers_say_so() -> None:
    assert all("workers" in VARIANTS[name].supports for name in ("uvicorn/standard", "gunicorn/sync", "granian/wsgi"))


def _argv(variant: Variant, *, tls: bool) -> tuple[str, ...]:
    app = next(name for name, app in MATRIX.apps.items() if app.protocol == variant.protocol)
    cell = Cell(variant, "slim", "wheel", "3.13", app, "item", 7, 5, tls, 32)
    image = BuiltImage(image_of(MATRIX, cell), "reference", "", BaseFacts("", "", "", ""), "", {})
    launch = Launch(cell.id, image, variant, MATRIX.apps[app].module, 7, 5, tls, Placement((0,), (1,)))
    return launch.argv(host="127.0.0.9", port=8123, apps="/opt/apps", venv="/opt/venv", tmp="/tmp", tls="/opt/tls")


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda variant: str(variant.name))
def test_command_is_whole(variant: Variant) -> None:
    for tls in (False, True) if "tls" in variant.supports else (False,):
        text = " ".join(_argv(variant, tls=tls))
        wanted = {"127.0.0.9": True, "8123": True, "/opt/tls/key.pem": tls, "/opt/tls/cert.pem": tls}
        if "workers" in variant.supports:
            wanted[" 7"] = True
        assert {word: word in text for word in wanted} == wanted
        assert "{" not in text
        assert "  " not in text


def test_options_of_a_variant_and_of_tls_reach_the_command() -> None:
    argv = _argv(VARIANTS["gunicorn/gthread"], tls=True)
    at = argv.index("-k")
    assert argv[at : at + 8] == (
        "-k", "gthread", "--threads", "5", "--keyfile", "/opt/tls/key.pem", "--certfile", "/opt/tls/cert.pem"
    )  # fmt: skip


def test_variants_with_the_same_packages_share_an_image() -> None:
    images = {name: VARIANTS[name].image for name in ("gunicorn/sync", "gunicorn/gthread", "gunicorn/uvicorn-worker")}
    assert images["gunicorn/sync"] == images["gunicorn/gthread"] != images["gunicorn/uvicorn-worker"]
    by_what_is_installed: dict[tuple[object, ...], set[str]] = {}
    for v in VARIANTS.values():
        key = (v.server, v.install, v.compiled, v.sdist_only, repr(v.system))
        by_what_is_installed.setdefault(key, set()).add(v.image)
    assert all(len(names) == 1 for names in by_what_is_installed.values())
    assert len(set.union(*by_what_is_installed.values())) == len(by_what_is_installed)


@pytest.mark.parametrize("suite", MATRIX.suites)
def test_suite_has_cells_and_every_reason_is_given(suite: str) -> None:
    selection = expand(MATRIX, suite)
    assert all(left.why for left in selection.left_out)
    if selection.probe == "load":
        assert any(selection.is_baseline(cell) for cell in selection.cells)
        assert any(own != other for own, other in selection.references().items())
    ids = [cell.id for cell in selection.cells]
    assert len(set(ids)) == len(ids)


def test_quick_has_every_server_family_and_takes_under_five_minutes() -> None:
    selection = expand(MATRIX, "quick")
    assert {cell.variant.server for cell in selection.cells} == {name.partition("/")[0] for name in SERVERS}
    assert load_seconds(selection) < 300


def test_throughput_takes_connections_and_apps_as_promised() -> None:
    cells = [cell for cell in expand(MATRIX, "throughput").cells if cell.variant.name == "uvicorn/standard"]
    assert {cell.connections for cell in cells} == {1, 8, 32, 128}
    assert {cell.app for cell in cells} == {"starlette"}
