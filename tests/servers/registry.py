"""A read-only image registry for one image on 127.0.0.1: enough of the distribution API (v2) for a pull.

Docker takes registries on 127.0.0.0/8 over plain HTTP. The image comes from `docker save`.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


@contextlib.contextmanager
def registry(saved: bytes, *, hangs: bool = False) -> Iterator[str]:
    """Serve the image of a `docker save` archive under any name and tag; gives host:port.

    `hangs`: takes connections and never answers.
    """
    manifest, blobs = _image(saved)
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if hangs:
                over.wait(60)
                return
            if "/manifests/" in self.path:
                self._reply(MANIFEST, manifest)
            elif (digest := self.path.rpartition("/blobs/")[2]) in blobs:
                self._reply("application/octet-stream", blobs[digest])
            else:
                self._reply("application/json", b"{}")

        do_HEAD = do_GET

        def _reply(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
            self.send_header("Docker-Content-Digest", _digest(body))
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        over.set()
        server.shutdown()
        server.server_close()


def _image(saved: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The manifest of an archive's first image, and its blobs by digest."""
    with tarfile.open(fileobj=io.BytesIO(saved)) as archive:

        def read(name: str) -> bytes:
            member = archive.extractfile(name)
            return member.read() if member else b""

        listed = json.loads(read("manifest.json"))[0]
        config = read(listed["Config"])
        layers = [gzip.compress(read(name), compresslevel=1, mtime=0) for name in listed["Layers"]]
    entries = [{"mediaType": LAYER, "size": len(layer), "digest": _digest(layer)} for layer in layers]
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "size": len(config), "digest": _digest(config)},
        "layers": entries,
    }
    return json.dumps(document).encode(), {_digest(blob): blob for blob in (config, *layers)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
