"""Data files of a table, written from rows in its columns.

What pyiceberg's own writer does for every file (asking its configuration files, fitting each column anew, changing
threads) takes longer than a file of a row or two, of which a run of hundreds of topics writes thousands.
"""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING, Final

from pyiceberg.io.fileformat import FileFormatFactory
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import sanitize_column_names
from pyiceberg.table import TableProperties
from pyiceberg.table.locations import load_location_provider
from pyiceberg.typedef import Record

from lean_ops.lake.pyiceberg_savings import save_writing

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from pyiceberg.partitioning import PartitionKey
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

_FORMAT: Final = TableProperties.WRITE_FILE_FORMAT
_USUAL_FORMAT: Final = TableProperties.WRITE_FILE_FORMAT_DEFAULT


class DataFileWriter:
    """Writes files that no snapshot has yet; safe to share between threads."""

    def __init__(self, table: Table) -> None:
        save_writing()
        metadata = table.metadata
        self._io, self._metadata = table.io, metadata
        self._format = FileFormat(metadata.properties.get(_FORMAT, _USUAL_FORMAT))
        self._model = FileFormatFactory.get(self._format)
        self._locations = load_location_provider(metadata.location, metadata.properties)
        self._schema = _schema_of_files(metadata.schema())
        self._columns = self._schema.as_arrow().remove_metadata()
        self._write_id, self._numbers = uuid.uuid4(), itertools.count()

    def write(self, key: PartitionKey | None, rows: pa.Table) -> DataFile:
        """One file with all rows, which are of one partition."""
        name = f"00000-{next(self._numbers)}-{self._write_id}.{self._model.file_extension()}"
        path = self._locations.new_data_location(name, key)
        output = self._io.new_output(path)
        with self._model.create_writer(output, self._schema, self._metadata.properties) as writer:
            writer.write(self._fitted(rows))
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=self._format,
            partition=key.partition if key else Record(),
            file_size_in_bytes=len(output),
            sort_order_id=None,
            spec_id=self._metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **writer.result().to_serialized_dict(),
        )

    def _fitted(self, rows: pa.Table) -> pa.Table:
        """The rows in the file's columns, which know the ids of the table's; NULL where they lack one."""
        import pyarrow as pa

        names = (field.name for field in self._metadata.schema().fields)
        return pa.Table.from_arrays(list(_columns(rows, zip(names, self._columns, strict=True))), schema=self._columns)


def _schema_of_files(schema: Schema) -> Schema:
    """The schema with names that Avro allows; if it has none but such, the very same: what is known of it is kept."""
    allowed = sanitize_column_names(schema)
    return schema if allowed == schema else allowed


def _columns(rows: pa.Table, wanted: Iterable[tuple[str, pa.Field]]) -> Iterable[pa.ChunkedArray | pa.Array]:
    """The columns of these names, in these types."""
    import pyarrow as pa

    there = dict(zip(rows.column_names, rows.columns, strict=True))
    for name, field in wanted:
        column = there.get(name)
        if column is None:
            yield pa.nulls(rows.num_rows, field.type)
        else:
            yield column if column.type.equals(field.type, check_metadata=True) else column.cast(field.type)
