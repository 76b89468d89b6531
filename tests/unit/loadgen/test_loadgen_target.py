"""What is asked is what was meant: encoded where it must be, refused where it cannot be, never changed silently."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.contract import LoadSpec, Request
from loadgen.errors import SpecError
from loadgen.exchange import ring
from loadgen.spec import checked_request, read_spec
from loadgen.target import header, host_name, method, split, target

SENT: list[tuple[str, str]] = [
    ("/", "/"),
    ("/日本/1", "/%E6%97%A5%E6%9C%AC/1"),
    ("/%E6%97%a5/é", "/%E6%97%a5/%C3%A9"),
    ("/a b?c d", "/a%20b?c%20d"),
    ("/100%", "/100%25"),
    ("/%zz%2", "/%25zz%252"),
    ("/%2F..//./%00", "/%2F..//./%00"),
    ("/items/42?q=a+b&r[]=1", "/items/42?q=a+b&r%5B%5D=1"),
    ("/x?", "/x?"),
    ('/"<>\\^`{|}', "/%22%3C%3E%5C%5E%60%7B%7C%7D"),
    ("/;a=b,c:@!$&'()*", "/;a=b,c:@!$&'()*"),
    ("/\u2028\u00a0", "/%E2%80%A8%C2%A0"),
]
REFUSED_PATHS = ["", "items/42", "http://h/x", "*", "/a\tb", "/a\nb", "/a\x00", "/a\x7f", "/a\x85", "/a\udcff", "/x#y"]


@pytest.mark.parametrize(("path", "sent"), SENT)
def test_a_path_as_it_is_sent(path: str, sent: str) -> None:
    assert target(path) == sent
    assert split(f"http://h{path}").target == sent


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="#")))
def test_a_target_is_ascii_means_the_same_and_is_encoded_once(text: str) -> None:
    sent = target("/" + text)
    assert re.fullmatch(r"/([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*", sent)
    assert unquote_to_bytes(sent) == unquote_to_bytes("/" + text)
    assert target(sent) == sent


FORMS: list[Callable[[str], str]] = [target, lambda text: str(split(text)), lambda text: str(split(f"http://{text}/"))]


@given(st.sampled_from(FORMS), st.text())
def test_any_text_is_sent_whole_or_refused(form: Callable[[str], str], text: str) -> None:
    with suppress(SpecError):
        sent = form(text)
        assert sent.isascii() and sent.isprintable() and " " not in sent


@pytest.mark.parametrize("path", REFUSED_PATHS)
def test_what_cannot_be_a_path_is_refused(path: str) -> None:
    with pytest.raises(SpecError, match="path: "):
        target(path)


def test_a_path_without_its_slash_is_told_the_one_that_is_meant() -> None:
    with pytest.raises(SpecError, match=r"did you mean '/items/42'\?"):
        target("items/42")


URLS: list[tuple[str, str, str]] = [  # what is given, what is asked, the Host field
    ("http://127.0.0.1:8000", "http://127.0.0.1:8000/", "127.0.0.1:8000"),
    ("HTTPS://Example.org?q", "https://Example.org/?q", "Example.org"),
    ("http://h:/", "http://h/", "h"),
    ("http://[::1]:8000/日", "http://[::1]:8000/%E6%97%A5", "[::1]:8000"),
    ("http://[fe80::1%eth0]:80/", "http://[fe80::1%25eth0]:80/", "[fe80::1]:80"),
    ("http://[fe80::1%25eth0]/", "http://[fe80::1%25eth0]/", "[fe80::1]"),
    ("http://bücher.example/", "http://xn--bcher-kva.example/", "xn--bcher-kva.example"),
    ("http://例え。テスト:81/", "http://xn--r8jz45g.xn--zckzah:81/", "xn--r8jz45g.xn--zckzah:81"),
    ("http://my_service:80/x://y", "http://my_service:80/x://y", "my_service:80"),
]


@pytest.mark.parametrize(("url", "asked", "host_field"), URLS)
def test_a_url_as_it_is_asked(url: str, asked: str, host_field: str) -> None:
    assert str(split(url)) == asked
    assert str(split(asked)) == asked
    assert split(url).host_field == host_field


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://h/", "not http://"),
        ("http:///x", "no host and port"),
        ("http://:80/", "no host and port"),
        ("http://::1:8000/", "brackets: http://"),
        ("http://[::1/", "no host and port"),
        ("http://[::g]/", "spec.url"),
        ("http://h:99999/", "99999 is not a port"),
        ("http://h:0/", "0 is not a port"),
        ("http://h:8o/", "no host and port"),
        ("http://user:word@h/", "Authorization"),
        ("http://a b/", "not the name of a host"),
        ("http://h\t/", "a control character"),
        (" http://h/", "not http://"),
        ("http://straße.de/", "two ASCII forms"),
        (f"http://{'ü' * 70}/", "not the name of a host"),
        ("http://h/#x", "never sent"),
    ],
)
def test_what_cannot_be_asked_is_refused(url: str, says: str) -> None:
    with pytest.raises(SpecError, match=re.escape(says)):
        read_spec({"url": url})
    with pytest.raises(SpecError, match=re.escape(says).replace("spec", "request")):
        checked_request(Request(url=url))


@pytest.mark.parametrize("value", ["", "a b\tc", "é", "Ã©\x85"])
def test_a_header_field_is_sent_as_it_is(value: str) -> None:
    (exchange,) = ring(read_spec({"url": "http://h/", "headers": [["X", value]]}))
    assert f"\r\nX: {value}\r\n".encode("latin-1") in exchange.request


UNSENDABLE = [
    ("x-é", ""),
    ("", "v"),
    ("a b", "v"),
    ("x:", "v"),
    *(("X", v) for v in ("日", "a\nb", "\x7f", "\0", "\udcff")),
]


@pytest.mark.parametrize(("name", "value"), UNSENDABLE)
def test_a_header_field_that_cannot_be_sent_is_refused(name: str, value: str) -> None:
    with pytest.raises(SpecError, match=r"spec\.headers\[0\]\[[01]\]: "):
        read_spec({"url": "http://h/", "headers": [[name, value]]})


@given(st.text(), st.text())
def test_any_header_field_is_one_line_or_refused(name: str, value: str) -> None:
    try:
        sent = ": ".join(header(name, value)).encode("latin-1")
    except SpecError:
        return
    assert not set(sent) & {0, 10, 13, 127}
    assert sent.decode("latin-1") == f"{name}: {value}"


@given(st.text())
def test_any_method_is_a_word_as_it_is_or_refused(name: str) -> None:
    try:
        assert method(name) == name
    except SpecError:
        return
    assert name.isascii() and name.isprintable() and not set(name) & set(' ()<>@,;:\\"/[]?={}')


def test_the_name_that_a_certificate_is_verified_for_is_a_host() -> None:
    assert host_name("bücher.example") == "xn--bcher-kva.example"
    with pytest.raises(SpecError, match=r"spec\.tls\.server_name"):
        read_spec({"url": "https://h/", "tls": {"server_name": "a b"}})


def test_a_spec_that_was_not_checked_is_encoded_or_fails_but_is_never_replaced() -> None:
    (exchange,) = ring(LoadSpec(url="http://h/日"))
    assert exchange.request.startswith(b"GET /%E6%97%A5 HTTP/1.1\r\n")
    with pytest.raises(UnicodeEncodeError):
        ring(LoadSpec(url="http://h/", headers=(("X", "日"),)))
