from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

from lean_ops.lake.trust import java_key_store, write_trust_store

if TYPE_CHECKING:
    from pathlib import Path


def read_key_store(data: bytes) -> list[bytes]:
    """A reader of the format, written from its description and not from the writer."""
    magic, version, count = struct.unpack_from(">III", data)
    assert (magic, version) == (0xFEEDFEED, 2)
    at, certificates = 12, []
    for _ in range(count):
        tag, alias_length = struct.unpack_from(">IH", data, at)
        at += 6 + alias_length + 8
        (type_length,) = struct.unpack_from(">H", data, at)
        assert (tag, data[at + 2 : at + 2 + type_length]) == (2, b"X.509")
        at += 2 + type_length
        (length,) = struct.unpack_from(">I", data, at)
        certificates.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    assert data[at:] == hashlib.sha1(b"Mighty Aphrodite" + data[:at], usedforsecurity=False).digest()
    return certificates


def test_every_certificate_is_found_again_in_the_key_store() -> None:
    certificates = [b"one", b"two" * 100, b"\x00\xff"]

    assert read_key_store(java_key_store(certificates)) == certificates


def test_a_bundle_that_holds_no_certificates_makes_no_store(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("not a certificate")

    assert not write_trust_store(tmp_path / "store.jks", {"SSL_CERT_FILE": str(bundle)})
    assert not (tmp_path / "store.jks").exists()
