"""Personal data: hashed, masked or dropped before anything is written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from lean_ops.curate import sql

_SHOWN: Final = 4
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


def protected(value: str, pii: str | None, key: PiiKey | None) -> str:
    """A STRING value as it may be written."""
    if pii == "hash":
        if key is None:
            raise ValueError("a schema that hashes is only active while there is a key")
        return _keyed_hash(value, key)
    if pii == "mask":
        return _masked(value)
    return "CAST(NULL AS string)" if pii == "drop" else value


def _keyed_hash(value: str, key: PiiKey) -> str:
    """HMAC-SHA-256 of the text's UTF-8 bytes, in hexadecimal; NULL stays NULL."""
    inner = f"sha2(concat(X'{key.inner.hex()}', encode({value}, 'UTF-8')), 256)"
    return f"sha2(concat(X'{key.outer.hex()}', unhex({inner})), 256)"


def _masked(value: str) -> str:
    """All but the last four characters as `*`; of a text that short every character, or nothing would be hidden."""
    hidden = sql.when(f"length({value}) > {_SHOWN}", f"length({value}) - {_SHOWN}", f"length({value})")
    return f"concat(repeat('*', {hidden}), substring({value}, {hidden} + 1))"
