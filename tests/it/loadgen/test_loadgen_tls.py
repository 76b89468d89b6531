"""TLS, and requests that do not fit into one send."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import Json, loaded
from scripted import BODY, answer, answering, echo, once, served

from loadgen.ceiling import certificate
from loadgen.client import Outgoing, fetch
from loadgen.contract import Expect, LoadSpec, Request, Tls
from loadgen.null import server_context

BIG = bytes(range(256)) * 4_000  # 1 MB, more than a socket takes at once


@pytest.fixture(scope="module")
def cert(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command is not installed; it makes the certificate")
    yield certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def context(cert: Path) -> ssl.SSLContext:
    return server_context(str(cert), str(cert.with_name("key.pem")))


def slice_of(url: str, cert: Path | None) -> Json:
    tls = Tls(ca=str(cert) if cert else None)
    return loaded(LoadSpec(url=url, connections=2, duration_s=0.5, expect=Expect(200, BODY), tls=tls))


def test_answers_over_tls(cert: Path, context: ssl.SSLContext) -> None:
    with served(answering(answer()[:-9], answer()[-9:]), context) as url:
        result = slice_of(url, cert)
    assert result["requests"] > 0
    assert not any(result["errors"].values()), result["first_error"]
    assert result["tls"] == {"handshakes": 2, "resumed": 0}  # without a warm-up they are inside the stretch


def test_sessions_are_resumed(cert: Path, context: ssl.SSLContext) -> None:
    with served(once(answer(BODY, "connection: close")), context) as url:
        result = slice_of(url, cert)
    assert not any(result["errors"].values()), result["first_error"]
    assert result["tls"]["handshakes"] == result["requests"]
    assert result["tls"]["resumed"] >= result["requests"] - 2


def test_a_certificate_that_nobody_vouches_for_is_an_error(context: ssl.SSLContext) -> None:
    with served(answering(answer()), context) as url:
        result = slice_of(url, None)
    assert result["requests"] == 0
    assert result["errors"]["protocol"] > 0
    assert "CERTIFICATE_VERIFY_FAILED" in result["first_error"]["detail"]


def test_no_tls_where_tls_is_expected(cert: Path) -> None:
    with served(answering(answer())) as url:
        result = slice_of(url.replace("http:", "https:"), cert)
    assert result["requests"] == 0


def test_fetch_over_tls(cert: Path, context: ssl.SSLContext) -> None:
    with served(answering(answer()), context) as url:
        (found,) = fetch([Outgoing(Request(url=url, tls=Tls(ca=str(cert))))], keep_alive=True)
    assert found.status == 200


@pytest.mark.parametrize("encrypted", [False, True])
def test_big_requests_and_answers(cert: Path, context: ssl.SSLContext, encrypted: bool) -> None:
    with served(echo, context if encrypted else None) as url:
        result = loaded(
            LoadSpec(url=url, method="POST", body=BIG, duration_s=2, expect=Expect(200, BIG), tls=Tls(ca=str(cert)))
        )
    assert result["requests"] > 0
    assert not any(result["errors"].values()), result["first_error"]
