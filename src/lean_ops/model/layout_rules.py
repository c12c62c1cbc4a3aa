"""Rules of a schema file's `partitioning` and `table_properties`: how far a topic may lay out its Curated table.

Like every rule they read the file's data as it came and skip whatever has the wrong shape.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.partitioning import parse_partition
from lean_ops.model.problem import Problem
from lean_ops.model.strict_json import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lean_ops.model.data_type import DataType
    from lean_ops.model.partitioning import PartitionField

MAX_FIELDS: Final = 8
MAX_PROPERTIES: Final = 50
MAX_PROPERTY_CHARACTERS: Final = 1000
_PROPERTY_NAME: Final = re.compile(r"(?:write|commit|read|history)(?:\.[A-Za-z0-9_-]+)+")
_OWN_PREFIX: Final = "lean-ops."
# Exactly-once, the tables' place and the snapshots' safety rest on these.
_OWN_PROPERTIES: Final = frozenset(
    {
        "format-version",
        "gc.enabled",
        "write.merge.mode",
        "write.merge.distribution-mode",
        "write.update.mode",
        "write.delete.mode",
        "write.merge.isolation-level",
        "write.data.path",
        "write.metadata.path",
        "write.folder-storage.path",
        "write.object-storage.path",
        "write.object-storage.enabled",
        "write.wap.enabled",
        "write.upsert.enabled",
        "write.metadata.delete-after-commit.enabled",
    }
)


def layout_problems(data: Mapping[str, Any], types: Mapping[str, DataType | None]) -> Iterator[Problem]:
    """What is wrong with the layout, given the columns to lay out by; a type of None is not known."""
    partitioning, properties = data.get("partitioning"), data.get("table_properties")
    if isinstance(partitioning, list):
        yield from _partitioning_problems(partitioning, types, _dropped(data.get("payload_columns")))
    if isinstance(properties, dict):
        yield from _properties_problems(properties)


def _dropped(columns: Any) -> frozenset[str]:
    """The columns that hold nothing, because their pii is `drop`."""
    items = columns.items() if isinstance(columns, dict) else ()
    return frozenset(name for name, column in items if isinstance(column, dict) and column.get("pii") == "drop")


# partitioning


def _partitioning_problems(
    entries: list[Any], types: Mapping[str, DataType | None], dropped: frozenset[str]
) -> Iterator[Problem]:
    if len(entries) > MAX_FIELDS:
        yield Problem(("partitioning",), "too many fields", str(len(entries)), f"at most {MAX_FIELDS}")
    fields: dict[int, PartitionField] = {}
    for position, text in enumerate(entries):
        try:
            if isinstance(text, str):
                fields[position] = parse_partition(text)
        except ValueError as error:
            yield Problem(("partitioning", position), "not a partition field", shown(text), str(error))
    for position, field in fields.items():
        yield from (problem.under("partitioning", position) for problem in _field_problems(field, types, dropped))
    yield from _repetitions(fields)


def _repetitions(fields: Mapping[int, PartitionField]) -> Iterator[Problem]:
    """Fields that Iceberg would call redundant, or that would share a name."""
    first: dict[tuple[str, str], PartitionField] = {}
    for position, field in fields.items():
        earlier = first.setdefault(field.slot, field)
        if earlier is not field:
            expected = f"no second one beside {shown(str(earlier))}"
            yield Problem(("partitioning", position), "its column has such a field", shown(str(field)), expected)


def _field_problems(
    field: PartitionField, types: Mapping[str, DataType | None], dropped: frozenset[str]
) -> Iterator[Problem]:
    """What is wrong with one field, seen from its own place."""
    if field.column not in types:
        expected = "an envelope column, a payload column, first_seen_ts or last_updated_ts"
        yield Problem((), "no such column", shown(field.column), expected)
        return
    data_type = types[field.column]
    if data_type is not None and data_type.kind not in field.transform.kinds:
        expected = f"a column of type {', '.join(sorted(field.transform.kinds))}"
        yield Problem((), f"{field.transform} is not for type {data_type}", shown(str(field)), expected)
    if field.column in dropped:
        yield Problem((), "this column holds nothing", f"{shown(field.column)} with pii drop", "another column")
    if field.name != field.column and field.name in types:
        expected = f"no column {shown(field.name)} beside it: the partition has that name"
        yield Problem((), "its name is a column's", shown(str(field)), expected)


# table_properties


def _properties_problems(properties: Mapping[str, Any]) -> Iterator[Problem]:
    if len(properties) > MAX_PROPERTIES:
        yield Problem(("table_properties",), "too many properties", str(len(properties)), f"at most {MAX_PROPERTIES}")
    for name, value in properties.items():
        yield from _property_name_problems(name)
        if isinstance(value, str) and len(value) > MAX_PROPERTY_CHARACTERS:
            found, expected = f"{len(value)} characters", f"at most {MAX_PROPERTY_CHARACTERS} characters"
            yield Problem(("table_properties", name), "is too long", found, expected)


def _property_name_problems(name: str) -> Iterator[Problem]:
    keys = ("table_properties", name)
    if name in _OWN_PROPERTIES or name.startswith(_OWN_PREFIX):
        yield Problem(keys, "the pipeline sets this property itself", shown(name), "a schema without it")
    elif not _PROPERTY_NAME.fullmatch(name):
        expected = "a name such as write.parquet.compression-codec, beginning with write., commit., read. or history."
        yield Problem(keys, "not a property for a schema to set", shown(name), expected)
