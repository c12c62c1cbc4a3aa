"""The lake as pyiceberg sees it: tables made from shapes, loaded, and evolved."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.altered import refuse_altered
from lean_ops.lake.home_place import HomePlace
from lean_ops.model.data_type import DataType, Kind
from lean_ops.model.errors import TerminalError
from lean_ops.model.tables import RAW, STANDARDIZED, ColumnType, TableName, TableShape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.transforms import Transform
    from pyiceberg.types import IcebergType

    from lean_ops.lake.place import CatalogPlace
    from lean_ops.lake.reader import CatalogReader
    from lean_ops.model.partitioning import PartitionField
    from lean_ops.settings import Settings

CATALOG_NAME: Final = "lean_ops"
_TABLE_PROPERTIES: Final = {
    "write.parquet.compression-codec": "zstd",
    "write.target-file-size-bytes": "268435456",
    "commit.manifest.target-size-bytes": "8388608",
    "commit.manifest-merge.enabled": "true",
    # Old metadata files go with the commit that replaces them: hundreds of tables commit every few minutes.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    # A batch writes few days, so rows go to one open file per day and nothing is shuffled or sorted (ADR 0011).
    "write.distribution-mode": "none",
}


# A table that many small batches are written to: its manifests are put together before they are many, so that
# finding its files takes as long after a hundred batches as after ten.
MANY_BATCHES: Final = {"commit.manifest.min-count-to-merge": "10"}


class Lake:
    """The tables of one catalog. Opened when first used, safe to share between threads."""

    def __init__(self, settings: Settings, place: CatalogPlace | None = None) -> None:
        self._format_version = settings.format_version
        self._place = place or HomePlace(CATALOG_NAME, settings.catalog_file, settings.warehouse_dir)
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self.names = settings.names

    @property
    def file(self) -> CatalogReader:
        """The catalog for those who only read."""
        return self._place.reader

    @property
    def catalog(self) -> Catalog:
        """The pyiceberg catalog."""
        with self._lock:
            if self._catalog is None:
                self._catalog = self._place.open()
            return self._catalog

    def load(self, name: TableName) -> Table:
        """A table that must be there."""
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self.catalog.load_table((name.database, name.table))
        except NoSuchTableError as error:
            raise TerminalError(
                "there is no such table", where=str(name), remedy="`lean-ops init` makes the shared tables."
            ) from error

    def exists(self, name: TableName) -> bool:
        """Whether a table is there."""
        return self.catalog.table_exists((name.database, name.table))

    def ensure(self, name: TableName, shape: TableShape, more_properties: Mapping[str, str] | None = None) -> Table:
        """The table, made of its shape if it is not there yet."""
        from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError

        identifier = (name.database, name.table)
        try:
            return self.catalog.load_table(identifier)
        except NoSuchTableError:
            self._place.ensure_database(self.catalog, name.database)
        self._refuse_dropped(name)
        version = {"format-version": str(self._format_version)}
        properties = {**_TABLE_PROPERTIES, **version, **(more_properties or {})}
        schema = _schema(shape)
        try:
            return self.catalog.create_table(
                identifier,
                schema,
                location=self._place.location_of(name),
                partition_spec=_partition_spec(shape, schema),
                properties=properties,
            )
        except TableAlreadyExistsError:  # another process was faster
            return self.catalog.load_table(identifier)

    def _refuse_dropped(self, name: TableName) -> None:
        """A table whose files are there was dropped by hand; one made in its place would hide what it holds."""
        newest = self._place.leftover(name)
        # Asked again after that look: another process may have made the table and written to it meanwhile.
        if newest is not None and not self.exists(name):
            raise TerminalError(
                "the table is gone from the catalog, and its files are still there",
                where=str(name),
                found=newest,
                remedy="Register that metadata file again; docs/runbook-faults.md shows how.",
            )

    def ensure_shared(self) -> None:
        """The databases, and every table that all topics share."""
        for database in self.names.databases:
            self._place.ensure_database(self.catalog, database)
        for name, shape in self.names.shared.items():
            self.ensure(name, shape, _bounds_of_times(shape))

    def ensure_raw(self, topic: str) -> Table:
        """A topic's RAW table."""
        return refuse_altered(self.ensure(self.names.raw(topic), RAW))

    def ensure_standardized(self, topic: str) -> Table:
        """A topic's Standardized table."""
        table = with_first_snapshot(self.ensure(self.names.standardized(topic), STANDARDIZED, MANY_BATCHES))
        return refuse_altered(table, with_docs=True)


def _bounds_of_times(shape: TableShape) -> dict[str, str]:
    """Files of a shared table are found by topic and time; bounds of the other columns would only make them dear.

    Every commit of every topic adds a file, and what is said of each is written again whenever manifests are merged.
    """
    times = (column.name for column in shape.columns if column.type is ColumnType.TIMESTAMP)
    bounded = {f"write.metadata.metrics.column.{name}": "full" for name in times}
    return {"write.metadata.metrics.default": "none", **bounded}


def with_first_snapshot(table: Table) -> Table:
    """The table, with an empty snapshot if it has none: a branch needs one to start from."""
    if table.current_snapshot() is None:
        table.append(table.schema().as_arrow().empty_table())
    return table


def _schema(shape: TableShape) -> Schema:
    from pyiceberg.schema import Schema
    from pyiceberg.types import ListType, NestedField, StringType

    fields, element_id = [], len(shape.columns)
    for field_id, column in enumerate(shape.columns, start=1):
        kind = iceberg_type(column.type)
        if column.type is ColumnType.STRINGS:
            element_id += 1
            kind = ListType(element_id=element_id, element=StringType(), element_required=False)
        fields.append(NestedField(field_id, column.name, kind, required=False, doc=column.doc))
    return Schema(*fields)


def iceberg_type(kind: ColumnType | DataType) -> IcebergType:
    """The Iceberg type of a column; a list's is made by its caller, because it needs an id of its own."""
    from pyiceberg import types

    if isinstance(kind, DataType) and kind.kind is Kind.DECIMAL:
        return types.DecimalType(kind.precision, kind.scale)
    plain: dict[str, IcebergType] = {
        ColumnType.BIGINT: types.LongType(),
        ColumnType.DOUBLE: types.DoubleType(),
        ColumnType.BOOLEAN: types.BooleanType(),
        ColumnType.TIMESTAMP: types.TimestamptzType(),
        Kind.INT: types.IntegerType(),
        Kind.BIGINT: types.LongType(),
        Kind.DOUBLE: types.DoubleType(),
        Kind.BOOLEAN: types.BooleanType(),
        Kind.DATE: types.DateType(),
        Kind.TIMESTAMP: types.TimestamptzType(),
    }
    return plain.get(kind.kind if isinstance(kind, DataType) else kind, types.StringType())


def transform_of(partition: PartitionField) -> Transform[Any, Any]:
    """A partition field's transform as pyiceberg has it."""
    from pyiceberg.transforms import parse_transform

    argument = "" if partition.argument is None else f"[{partition.argument}]"
    return parse_transform(f"{partition.transform}{argument}")


def _partition_spec(shape: TableShape, schema: Schema) -> PartitionSpec:
    from pyiceberg.partitioning import PartitionField, PartitionSpec

    return PartitionSpec(
        *(
            PartitionField(
                source_id=schema.find_field(partition.column).field_id,
                field_id=1000 + position,
                transform=transform_of(partition),
                name=partition.name,
            )
            for position, partition in enumerate(shape.partitions)
        )
    )
