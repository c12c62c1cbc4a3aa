"""Personal data: hashed, masked or dropped before anything is written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column

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


def protected(value: Column, pii: str | None, key: PiiKey | None) -> Column:
    """A STRING value as it may be written."""
    if pii == "hash":
        if key is None:
            raise ValueError("a schema that hashes is only active while there is a key")
        return keyed_hash(value, key)
    if pii == "mask":
        return masked(value)
    return F.lit(None).cast("string") if pii == "drop" else value


def keyed_hash(value: Column, key: PiiKey) -> Column:
    """HMAC-SHA-256 of the text's UTF-8 bytes, in hexadecimal; NULL stays NULL."""
    inner = F.sha2(F.concat(F.lit(key.inner), F.encode(value, "UTF-8")), 256)
    return F.sha2(F.concat(F.lit(key.outer), F.unhex(inner)), 256)


def masked(value: Column) -> Column:
    """All but the last four characters as `*`; of a text that short every character, or nothing would be hidden."""
    hidden = F.when(F.length(value) > _SHOWN, F.length(value) - _SHOWN).otherwise(F.length(value))
    return F.concat(F.repeat(F.lit("*"), hidden), F.substr(value, hidden + 1))
