"""What a request says of itself, as it goes over the wire: nothing is replaced, left out or cut without a word.

A URL or a path may be written in any script: what a request target cannot hold is percent-encoded as UTF-8 (RFC 3987,
3.1), and what is encoded already stays so. A host's name becomes its ASCII form (IDNA). What has none is refused.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote

from loadgen.errors import SpecError

_URL = re.compile(r"(https?)://([^/?]*)(/[^?]*)?(\?.*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[^\]@]*\]|[^:@\[\]]*)(?::([0-9]*))?")
_HOST = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=%-]+")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_KEPT = "/?:@!$&'()*+,;=%"  # of a path and a query, beside letters, digits and -._~ (RFC 3986, 3.3 and 3.4)
_UNSENDABLE = {"Cc": "a control character", "Cs": "a byte that is not UTF-8"}
_OTHER_SINCE_2008 = "ßς\u200c\u200d"  # Python's IDNA is that of 2003, which made other names of these


@dataclass(frozen=True)
class Url:
    """An absolute URL in ASCII. `host` as sockets take it; `port` None: the scheme's own; `target`: path and query."""

    scheme: str
    host: str
    port: int | None
    target: str

    def __str__(self) -> str:
        """The URL as it is asked."""
        return f"{self.scheme}://{_authority(self.host.replace('%', '%25', 1), self.port)}{self.target}"

    @property
    def host_field(self) -> str:
        """The value of the Host field; the zone of an IPv6 address is left out, as RFC 6874 (3) wants."""
        return _authority(self.host.partition("%")[0], self.port)


def split(url: str, field: str = "url") -> Url:
    """The parts of a URL, each as it is sent. Raises SpecError that begins with the name of the field."""
    parts = _URL.fullmatch(_plain(field, url))
    if not parts:
        raise SpecError(f"{field}: {url!r} is not http://host[:port]/path or https://…")
    scheme, authority, path, query = parts.groups("")
    host, port = _place(field, url, authority)
    return Url(scheme.lower(), host, port, target(f"{path or '/'}{query}", field))


def target(path: str, field: str = "path") -> str:
    """A path with its query as a request target. Raises SpecError for what cannot be one."""
    _plain(field, path)
    if not path.startswith("/"):
        raise SpecError(f"{field}: {path!r} does not begin with /; did you mean {'/' + path!r}?")
    return quote(_BARE_PERCENT.sub("%25", path), safe=_KEPT)


def method(name: str, field: str = "method") -> str:
    """A request method: letters, digits and a few signs, as they are. Raises SpecError for what is none."""
    if not _TOKEN.fullmatch(name):
        raise SpecError(f"{field}: {name!r} is not a method such as GET")
    return name


def header(name: str, value: str, field: str = "header") -> tuple[str, str]:
    """A field of a request. Raises SpecError where its name or its value cannot be sent (RFC 9110, 5.1 and 5.5)."""
    if not _TOKEN.fullmatch(name):
        raise SpecError(f"{field}[0]: {name!r} is not the name of a header field: letters, digits and !#$%&'*+.^_`|~-")
    wrong = next((sign for sign in value if not (sign == "\t" or " " <= sign <= "~" or "\x80" <= sign <= "\xff")), "")
    if wrong:
        raise SpecError(
            f"{field}[1]: {value!r} holds {wrong!r}, which a header field cannot carry; "
            "it takes a line of Latin-1: encode other text, e.g. as percent-encoded UTF-8"
        )
    return name, value


def host_name(name: str, field: str = "host") -> str:
    """The ASCII form of a host's name. Raises SpecError for what is none."""
    _plain(field, name)
    if any(sign in name for sign in _OTHER_SINCE_2008):
        raise SpecError(f"{field}: {name!r} has two ASCII forms (IDNA 2003 and 2008); write the one you mean, xn--…")
    try:
        plain = name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise SpecError(f"{field}: {name!r} is not the name of a host: {error}") from error
    if not _HOST.fullmatch(plain):
        raise SpecError(f"{field}: {name!r} is not the name of a host")
    return plain


def _plain(field: str, text: str) -> str:
    """A text without what could be neither sent nor encoded. Raises SpecError."""
    for sign in text:
        if kind := _UNSENDABLE.get(unicodedata.category(sign)):
            raise SpecError(f"{field}: {text!r} holds {kind}, {sign!r}; write %{ord(sign) & 255:02X} if it is meant")
    if "#" in text:
        raise SpecError(f"{field}: {text!r}: what follows # is never sent to a server; leave it out, or write %23")
    return text


def _place(field: str, url: str, authority: str) -> tuple[str, int | None]:
    """Host and port of the part of a URL between // and /."""
    if "@" in authority:
        raise SpecError(f"{field}: a user in a URL is not sent; use a header: Authorization: Basic …")
    parts = _AUTHORITY.fullmatch(authority)
    if not parts or not parts[1]:
        hint = f"; an IPv6 address stands in brackets: http://[{authority}]/" if authority.count(":") > 1 else ""
        raise SpecError(f"{field}: {url!r} has no host and port like 127.0.0.1:8000 between // and /{hint}")
    port = int(parts[2]) if parts[2] else None
    if port is not None and not 0 < port < 65536:
        raise SpecError(f"{field}: {url!r}: {port} is not a port between 1 and 65535")
    return _address(field, parts[1][1:-1]) if parts[1].startswith("[") else host_name(parts[1], field), port


def _address(field: str, text: str) -> str:
    """An IPv6 address, its zone after a plain % as sockets take it."""
    address = text.replace("%25", "%", 1)
    try:
        ipaddress.IPv6Address(address)
    except ValueError as error:
        raise SpecError(f"{field}: {error}") from error
    return address


def _authority(host: str, port: int | None) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if port is None else f"{bracketed}:{port}"
