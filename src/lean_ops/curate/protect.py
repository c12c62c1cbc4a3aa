"""The key under which personal data is hashed before anything is written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

_BLOCK: Final = 64  # bytes of a SHA-256 block, by which RFC 2104 pads a key


@dataclass(frozen=True, slots=True)
class PiiKey:
    """The two padded forms of a secret key that HMAC-SHA-256 (RFC 2104) puts before what it hashes."""

    inner: bytes
    outer: bytes

    @classmethod
    def of(cls, secret: str) -> PiiKey:
        """The key for a secret text."""
        key = secret.encode()
        key = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
        return cls(bytes(byte ^ 0x36 for byte in key), bytes(byte ^ 0x5C for byte in key))
