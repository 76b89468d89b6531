"""`matrix wheels` asks indexes on loopback as pip would: addresses, credentials, proxy, retries and time-out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator.cli.wheels import wheels_table
from orchestrator.errors import EnvironmentProblem
from orchestrator.images.host import host_settings
from orchestrator.images.index import index_urls, look_up
from orchestrator.tools.wheels import wheels_json
from tests.servers.index import Index, serving

Configure = Callable[..., None]
SECRET = "somebody:pass-word"


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Configure]:
    """Sets pip's options, with no others of this machine."""
    for name in list(os.environ):
        if name.startswith("PIP_") or name.lower() in ("http_proxy", "all_proxy", "no_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    def with_options(**options: str) -> None:
        for name, text in options.items():
            monkeypatch.setenv(f"PIP_{name.upper()}", text)
        host_settings.cache_clear()

    yield with_options
    host_settings.cache_clear()


@pytest.fixture
def serve() -> Iterator[Callable[[Index], Index]]:
    with ExitStack() as stack:
        yield lambda index: stack.enter_context(serving(index))


Serve = Callable[[Index], Index]


def has_freastal() -> bool:
    return look_up({"freastal": "0.0.3"})["freastal"] is not None


def test_what_an_index_has_is_told_by_python_libc_and_machine(configure: Configure, serve: Serve) -> None:
    index = serve(Index())
    configure(index_url=f"{index.url}/")
    found = look_up({"Freastal": "0.0.3", "no-such-project": ""})
    told = wheels_json(found)["distributions"]
    assert told["Freastal"]["wheels"]["glibc x86_64"] == {"cp313": "cp313", "cp314": "", "cp314t": ""}
    assert told["no-such-project"] is None
    assert wheels_table(found).row_count == 2
    assert index.asked == ["/simple/freastal/", "/simple/no-such-project/"]


def test_a_further_index_is_asked_too(configure: Configure, serve: Serve) -> None:
    first, second = serve(Index(login=SECRET)), serve(Index())
    configure(index_url=second.url + "-nothing", extra_index_url=f"{second.url}")
    assert has_freastal()
    assert len(second.asked) == 2
    configure(extra_index_url=f"{first.url} {second.url}")
    with pytest.raises(EnvironmentProblem, match="denies access: status 401"):
        has_freastal()


def test_without_an_index_nothing_is_asked(configure: Configure, serve: Serve) -> None:
    index = serve(Index())
    configure(index_url=index.url, no_index="1")
    assert not has_freastal()
    assert index.asked == []


def test_redirects_are_followed(configure: Configure, serve: Serve) -> None:
    real = serve(Index())
    configure(index_url=serve(Index(moved_to=real.url.removesuffix("/simple"))).url)
    assert has_freastal()


def test_credentials_come_from_the_address_or_from_netrc(configure: Configure, serve: Serve, tmp_path: Path) -> None:
    index = serve(Index(login=SECRET))
    configure(index_url=index.url)
    with pytest.raises(EnvironmentProblem, match="denies access: status 401") as raised:
        has_freastal()
    assert "netrc" in raised.value.next_step
    configure(index_url=index.url.replace("//", f"//{SECRET}@"))
    assert has_freastal()
    user, _, password = SECRET.partition(":")
    (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login {user} password {password}\n")
    configure(index_url=index.url)
    assert has_freastal()


def test_a_busy_index_is_asked_again_as_often_as_pip_would(configure: Configure, serve: Serve) -> None:
    configure(index_url=serve(Index(busy=1)).url)
    assert has_freastal()
    configure(index_url=serve(Index(busy=9)).url, retries="0")
    with pytest.raises(EnvironmentProblem, match="status 503"):
        has_freastal()


def test_pips_proxy_is_asked_for_every_address(configure: Configure, serve: Serve) -> None:
    proxy = serve(Index())
    configure(index_url="http://index.invalid/simple", proxy=proxy.url.removesuffix("/simple"))
    assert not has_freastal()  # this proxy knows no addresses, so that it answers 404
    assert proxy.asked == ["http://index.invalid/simple/freastal/"]


@pytest.mark.parametrize(
    ("index", "options", "words"),
    [
        (Index(html=True), {}, r"no simple JSON API \(PEP 691\): status 200, text/html"),
        (Index(silent=True), {"timeout": "0.2", "retries": "0"}, "no answer within 0.2 s"),
        (Index(moved_to="ftp://elsewhere"), {}, "cannot be asked"),
    ],
    ids=["html", "silent", "odd-redirect"],
)
def test_trouble_is_told_without_the_address(
    index: Index, options: dict[str, str], words: str, configure: Configure, serve: Serve
) -> None:
    configure(index_url=serve(index).url.replace("//", f"//{SECRET}@"), **options)
    with pytest.raises(EnvironmentProblem, match=words) as raised:
        has_freastal()
    assert not [part for part in (*SECRET.split(":"), "127.0.0.1") if part in str(raised.value)]


def test_an_index_that_is_not_there_or_no_address_is_told_without_it(configure: Configure) -> None:
    for url in ("http://somebody:pass-word@127.0.0.1:9/simple", "https://somebody:pass-word@[::bad/simple", "nonsense"):
        configure(index_url=url, retries="0")
        with pytest.raises(EnvironmentProblem, match=r"the package index: it cannot be asked: \w") as raised:
            has_freastal()
        assert not [part for part in ("pass-word", "127.0.0.1") if part in str(raised.value)]


def test_without_settings_pips_own_default_is_asked(configure: Configure) -> None:
    configure()
    (url,) = index_urls(host_settings())
    assert url.startswith("https://") and url.endswith("/simple")
