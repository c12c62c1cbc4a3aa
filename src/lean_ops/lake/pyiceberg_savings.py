"""Work that pyiceberg repeats for the same answer, done once. `save_work` changes pyiceberg for the whole process."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.avro.file import AvroFileHeader
from pyiceberg.table.metadata import TableMetadataCommonFields
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata

_SCHEMA_KEY: Final = "avro.schema"
_SCHEMAS_KEPT: Final = 256
_SMALL_NUMBERS: Final = 8192


@cache
def save_work() -> None:
    """Let versions of metadata share their parts and Avro headers their schemas; write small numbers at once."""
    TableMetadataCommonFields.__deepcopy__ = _shallow_copy  # type: ignore[assignment,method-assign]
    AvroFileHeader.get_schema = _known_schema  # type: ignore[assignment,method-assign]
    BinaryEncoder.write_int = _write_int  # type: ignore[assignment,method-assign]


def _shallow_copy(metadata: TableMetadata, _: object = None) -> TableMetadata:
    """Versions of a table's metadata share their parts: nobody changes a part in place.

    pyiceberg copies all of it, every snapshot included, a dozen times for one commit: half of what a small batch cost.
    """
    return metadata.model_copy()


def _known_schema(header: AvroFileHeader) -> Schema:
    """The schema of a manifest or a list of them: hundreds of files have the same one, and nobody changes it."""
    if _SCHEMA_KEY not in header.meta:
        raise ValueError("No schema found in Avro file headers")
    return _schema_of(header.meta[_SCHEMA_KEY])


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _schema_of(text: str) -> Schema:
    return AvroSchemaConversion().avro_to_iceberg(json.loads(text))


def _varint(number: int) -> bytes:
    """A number as Avro has it: signs alternate, seven bits a byte, the lowest first."""
    rest = (number << 1) ^ (number >> 63)
    found = bytearray()
    while rest & ~0x7F:
        found.append((rest & 0x7F) | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


_VARINTS: Final = tuple(map(_varint, range(_SMALL_NUMBERS)))


def _write_int(encoder: BinaryEncoder, number: int) -> None:
    """A manifest is mostly numbers, and most of them are small: ids of columns, lengths, counts."""
    encoder.write(_VARINTS[number] if 0 <= number < _SMALL_NUMBERS else _varint(number))
