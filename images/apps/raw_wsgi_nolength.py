"""raw_wsgi without Content-Length: what a server does then (chunks, or a closed connection) is measured, too."""

from __future__ import annotations

from collections.abc import Iterable

import raw_wsgi


def app(environ: raw_wsgi.Environ, start_response: raw_wsgi.StartResponse) -> Iterable[bytes]:
    """raw_wsgi's answer, its length left for the server to find out."""

    def unmeasured(status: str, headers: list[tuple[str, str]]) -> object:
        return start_response(status, [(name, value) for name, value in headers if name.lower() != "content-length"])

    return raw_wsgi.app(environ, unmeasured)


application = app
