"""The Glue Data Catalog as its readers see it, by boto3 alone: who only looks need not carry pyiceberg and Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from lean_ops.aws.calls import calling
from lean_ops.lake.cloud_place import no_database
from lean_ops.lake.metadata_file import damaged_metadata
from lean_ops.lake.metadata_reader import MetadataReader
from lean_ops.lake.reader import by_topic
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

    from lean_ops.lake.snapshots import History
    from lean_ops.model.tables import Names, TableName

_ICEBERG: Final = "iceberg"
_VIEW: Final = "VIRTUAL_VIEW"
_MOST_METADATA_BYTES: Final = 256 * 1024 * 1024


class GlueApi(Protocol):
    """What is asked of Glue's client."""

    exceptions: Any

    def get_table(self, *, DatabaseName: str, Name: str) -> Any:  # noqa: N803  Glue's own names
        """One table."""

    def get_paginator(self, operation_name: str, /) -> Any:
        """Pages of a list."""


class GlueTables:
    """Which tables Glue has, and what their metadata files in S3 say."""

    def __init__(self, glue: GlueApi, s3: S3Client) -> None:
        self._glue = glue
        self._s3 = s3
        self.outlines = MetadataReader(self._read)

    def locations(self, database: str) -> dict[str, str]:
        """Metadata locations of a database's tables, by table name."""
        with calling(f"Glue database {database}"):
            try:
                return dict(sorted(self._locations(database)))
            except self._glue.exceptions.EntityNotFoundException as error:
                raise no_database(database) from error

    def _locations(self, database: str) -> Iterator[tuple[str, str]]:
        for page in self._glue.get_paginator("get_tables").paginate(DatabaseName=database):
            for table in page["TableList"]:
                location = _metadata_location(table)
                if location is not None:
                    yield table["Name"], location

    def location(self, name: TableName) -> str | None:
        """A table's metadata location; None if there is no such table."""
        table = self._table(name)
        return None if table is None else _metadata_location(table)

    def raw_locations(self, names: Names) -> dict[str, str]:
        """Metadata locations of the RAW tables, by topic."""
        return by_topic(self.locations(names.raw_database))

    def has_view(self, name: TableName) -> bool:
        """Whether there is a view of that name."""
        table = self._table(name)
        return table is not None and table.get("TableType") == _VIEW

    def history(self, name: TableName) -> History | None:
        """A table's history; None if there is no such table."""
        location = self.location(name)
        return self.read_history(str(name), location) if location else None

    def read_history(self, table: str, location: str) -> History:
        """The history in a metadata file."""
        return self.outlines.history(table, location)

    def _table(self, name: TableName) -> dict[str, Any] | None:
        with calling(f"Glue table {name}"):
            try:
                table: dict[str, Any] = self._glue.get_table(DatabaseName=name.database, Name=name.table)["Table"]
            except self._glue.exceptions.EntityNotFoundException:
                return None
        return table

    def _read(self, location: str) -> bytes:
        """A metadata file; TerminalError if there is none."""
        bucket, key = split_address(location)
        with calling(location):
            try:
                answer = self._s3.get_object(Bucket=bucket, Key=key)
            except self._s3.exceptions.NoSuchKey as error:
                raise damaged_metadata(location, location, FileNotFoundError(location)) from error
            if answer["ContentLength"] > _MOST_METADATA_BYTES:
                found = f"{answer['ContentLength']} bytes"
                raise TerminalError("a metadata file is too large", where=location, found=found)
            return answer["Body"].read()

    def metadata_files(self, folder: str) -> Iterator[str]:
        """The names of the metadata files in a folder of the warehouse."""
        bucket, prefix = split_address(folder)
        with calling(folder):
            for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
                names = (entry["Key"].removeprefix(prefix) for entry in page.get("Contents", ()))
                yield from (name for name in names if name.endswith(".metadata.json"))


def _metadata_location(table: dict[str, Any]) -> str | None:
    """Where Glue says an Iceberg table's metadata is; None for anything else that may be in the database."""
    parameters = table.get("Parameters", {})
    if parameters.get("table_type", "").lower() != _ICEBERG:
        return None
    location = parameters.get("metadata_location")
    return str(location) if location else None


def split_address(location: str) -> tuple[str, str]:
    """Bucket and key of an `s3://` address."""
    scheme, _, rest = location.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme not in {"s3", "s3a", "s3n"} or not bucket:
        raise TerminalError("not an address in S3", where=location, expected="s3://BUCKET/KEY")
    return bucket, key
