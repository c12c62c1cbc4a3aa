"""Work that pyiceberg repeats for the same answer, done once. `save_work` changes pyiceberg for the whole process."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyiceberg.avro import file as avro_file
from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.avro.file import AvroFileHeader
from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.table.metadata import TableMetadataCommonFields
from pyiceberg.typedef import EMPTY_DICT
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyiceberg.avro.reader import Reader
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata

_SCHEMA_KEY: Final = "avro.schema"
_SCHEMAS_KEPT: Final = 256
_SMALL_NUMBERS: Final = 8192
_Result = TypeVar("_Result")


@cache
def save_work() -> None:
    """Let versions of metadata share their parts and Avro headers their schemas; write small numbers at once."""
    TableMetadataCommonFields.__deepcopy__ = _shallow_copy  # type: ignore[assignment,method-assign]
    AvroFileHeader.get_schema = _known_schema  # type: ignore[assignment,method-assign]
    BinaryEncoder.write_int = _write_int  # type: ignore[assignment,method-assign]
    vars(avro_file)["resolve_reader"] = _known_reader


@cache
def save_writing() -> None:
    """Let data files of one table share what pyiceberg works out from its columns; a run writes thousands of them."""
    from pyiceberg.io import pyarrow as arrow_files

    for name in ("compute_statistics_plan", "parquet_path_to_id_mapping"):
        setattr(arrow_files, name, _once_for_the_same(getattr(arrow_files, name)))


class _Same:
    """Stands for an object, and is equal to what stands for the very same one: to compare schemas takes long."""

    __slots__ = ("it",)

    def __init__(self, it: Any) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.it is other.it


def _once_for_the_same(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """The function, asked once for the very same objects: nobody changes them, nor what it makes of them."""
    answer = lru_cache(_SCHEMAS_KEPT)(lambda *same: function(*(each.it for each in same)))
    return lambda *objects: answer(*map(_Same, objects))


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


def _known_reader(
    schema: Schema, wanted: Schema, types: Mapping[int, Any] = EMPTY_DICT, enums: Mapping[int, Any] = EMPTY_DICT
) -> Reader:
    """What reads the lines of a manifest; it keeps nothing of them, so that files of one schema can share it."""
    return _reader(_Same(schema), _Same(wanted), tuple(types.items()), tuple(enums.items()))


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _reader(schema: _Same, wanted: _Same, types: tuple[Any, ...], enums: tuple[Any, ...]) -> Reader:
    return resolve_reader(schema.it, wanted.it, dict(types), dict(enums))


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
