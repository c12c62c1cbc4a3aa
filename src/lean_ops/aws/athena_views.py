"""Athena's views: entries of the Glue catalog that hold a query. Iceberg's own views Glue does not have."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from lean_ops.aws.calls import calling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lean_ops.model.tables import TableName

# Iceberg's type: as Athena's engine calls it, and as Glue's columns do.
_TYPES: Final = {
    "string": ("varchar", "string"),
    "long": ("bigint", "bigint"),
    "timestamptz": ("timestamp(6) with time zone", "timestamp"),
}


class GlueViewsApi(Protocol):
    """What is asked of Glue's client."""

    exceptions: Any

    def create_table(self, *, DatabaseName: str, TableInput: Any) -> Any:  # noqa: N803  Glue's own names
        """A new entry."""

    def update_table(self, *, DatabaseName: str, TableInput: Any) -> Any:  # noqa: N803
        """The entry in another form."""


@dataclass(frozen=True, slots=True)
class AthenaViews:
    """Views in the Glue catalog."""

    glue: GlueViewsApi

    def make(self, view: TableName, query: str, columns: Mapping[str, str]) -> None:
        """Make a view of columns by name and Iceberg type, or make it again."""
        entry = _entry(view, query, columns)
        with calling(f"Glue view {view}"):
            try:
                self.glue.create_table(DatabaseName=view.database, TableInput=entry)
            except self.glue.exceptions.AlreadyExistsException:
                self.glue.update_table(DatabaseName=view.database, TableInput=entry)


def _entry(view: TableName, query: str, columns: Mapping[str, str]) -> dict[str, Any]:
    definition = {
        "originalSql": query,
        "catalog": "awsdatacatalog",
        "schema": view.database,
        "columns": [{"name": name, "type": _TYPES[kind][0]} for name, kind in columns.items()],
    }
    encoded = base64.b64encode(json.dumps(definition).encode()).decode()
    return {
        "Name": view.table,
        "TableType": "VIRTUAL_VIEW",
        "Parameters": {"presto_view": "true", "comment": "Presto View"},
        "PartitionKeys": [],
        "StorageDescriptor": {
            "Columns": [{"Name": name, "Type": _TYPES[kind][1]} for name, kind in columns.items()],
            "SerdeInfo": {},
        },
        "ViewOriginalText": f"/* Presto View: {encoded} */",
        "ViewExpandedText": "/* Presto View */",
    }
