"""Serve a WSGI or an ASGI app with freastal, which comes as a library only.

Workers, signals and TLS are freastal's own; this only passes the options on.
"""

from __future__ import annotations

import freastal  # type: ignore[import-not-found,unused-ignore]

from launch import options


def main() -> None:
    asked = options.parse("freastal", ["asgi", "wsgi"], tls=True)
    serve = freastal.serve if asked.interface == "wsgi" else freastal.serve_asgi
    tls = {"certfile": asked.certfile, "keyfile": asked.keyfile} if asked.certfile else {}
    serve(asked.app, host=asked.host, port=asked.port, workers=asked.workers, **tls)


if __name__ == "__main__":
    main()
