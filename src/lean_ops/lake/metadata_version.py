"""A table's metadata as its next version has it: what both have in common is taken from the one at hand.

Between two versions a snapshot is added, or a few. To make objects of all others again took about half of the
time of reading a table that has twenty.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.table.metadata import TableMetadataUtil

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    Json = dict[str, Any]

_SNAPSHOT: Final = {
    "snapshot-id": "snapshot_id",
    "parent-snapshot-id": "parent_snapshot_id",
    "sequence-number": "sequence_number",
    "timestamp-ms": "timestamp_ms",
    "manifest-list": "manifest_list",
    "schema-id": "schema_id",
}
_SCHEMA: Final = {"type", "fields", "schema-id", "identifier-field-ids"}
_FIELD: Final = {"id", "name", "required", "type", "doc"}


def read_metadata(text: bytes, known: TableMetadata | None) -> TableMetadata:
    """The metadata that a file holds; `known` is another version of it, or none, or of a table that was there before.

    What pyiceberg raises for text that is no metadata is raised here as well.
    """
    if known is not None:
        try:
            return TableMetadataUtil.parse_obj(_with_known(json.loads(text), known))
        except (AttributeError, KeyError, TypeError):  # nothing like metadata: pyiceberg finds the words for it
            pass
    return TableMetadataUtil.parse_raw(text.decode("utf-8"))


def _with_known(said: Json, known: TableMetadata) -> Json:
    """What is said, with the snapshots and schemas at hand in the place of those that say the same."""
    if said["table-uuid"] != str(known.table_uuid):
        return said
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in known.snapshots}
    schemas = {schema.schema_id: schema for schema in known.schemas}
    return {
        **said,
        "snapshots": [_known_snapshot(each, snapshots) for each in said.get("snapshots") or ()],
        "schemas": [_known_schema(each, schemas) for each in said["schemas"]],
    }


def _known_snapshot(said: Json, known: dict[int, Snapshot]) -> Snapshot | Json:
    """The snapshot at hand if it is all that is said of it."""
    snapshot = known.get(said.get("snapshot-id", -1))
    if snapshot is None or snapshot.summary is None or said.keys() - _SNAPSHOT.keys() != {"summary"}:
        return said
    if any(getattr(snapshot, name) != said.get(key) for key, name in _SNAPSHOT.items()):
        return said
    summary = {"operation": snapshot.summary.operation.value, **snapshot.summary.additional_properties}
    return snapshot if summary == said["summary"] else said


def _known_schema(said: Json, known: dict[int, Schema]) -> Schema | Json:
    """The schema at hand if it is all that is said of it: flat, as tables of ours are."""
    schema = known.get(said.get("schema-id", -1))
    if schema is None or said.keys() - _SCHEMA or said.get("identifier-field-ids", []) != schema.identifier_field_ids:
        return said
    fields = said["fields"]
    if len(fields) != len(schema.fields) or any(field.keys() - _FIELD for field in fields):
        return said
    same = (
        (field["id"], field["name"], field["required"], field["type"], field.get("doc"))
        == (here.field_id, here.name, here.required, str(here.field_type), here.doc)
        for field, here in zip(fields, schema.fields, strict=True)
    )
    return schema if all(same) else said
