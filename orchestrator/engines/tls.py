"""The certificate that servers under test use for TLS: made once a run, for 127.0.0.1 and localhost."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization


@dataclass(frozen=True)
class Certificate:
    """PEM texts: the server's key (PKCS#8) and certificate chain, and the CA that clients verify against."""

    key: bytes
    chain: bytes
    ca: bytes

    def write(self, folder: Path) -> None:
        for name, content in self._files().items():
            (folder / name).write_bytes(content)

    def tar(self) -> bytes:
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for name, content in self._files().items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), 0o644
                archive.addfile(entry, io.BytesIO(content))
        return stream.getvalue()

    def _files(self) -> dict[str, bytes]:
        return {"key.pem": self.key, "cert.pem": self.chain, "ca.pem": self.ca}


@cache
def certificate() -> Certificate:
    """One for the whole process."""
    authority = trustme.CA()
    leaf = authority.issue_cert("127.0.0.1", "localhost")
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
    return Certificate(_pkcs8(leaf.private_key_pem.bytes()), chain, authority.cert_pem.bytes())


def _pkcs8(pem: bytes) -> bytes:
    """granian reads no other form of key."""
    key = serialization.load_pem_private_key(pem, None)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
