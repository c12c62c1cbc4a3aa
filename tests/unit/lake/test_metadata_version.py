"""The next version of a table's metadata is the same object for object where it says the same, and else as it says."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from pyiceberg.exceptions import ValidationError
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

from lean_ops.lake.metadata_version import read_metadata

Json = dict[str, Any]


def snapshot(number: int) -> Json:
    return {
        "snapshot-id": number,
        **({"parent-snapshot-id": number - 1} if number > 1 else {}),
        "sequence-number": number,
        "timestamp-ms": 1_790_000_000_000 + number,
        "manifest-list": f"file:///w/db/t/metadata/snap-{number}.avro",
        "summary": {"operation": "append", "lean-ops.batch-id": f"b{number}", "total-records": str(number)},
        "schema-id": 0,
    }


def field(number: int, name: str, kind: Any = "string") -> Json:
    return {"id": number, "name": name, "required": False, "type": kind}


def schema(number: int, *fields: Json) -> Json:
    return {"type": "struct", "schema-id": number, "fields": list(fields)}


def metadata(snapshots: int) -> Json:
    """A table's metadata after so many commits."""
    nested = field(3, "c", {"type": "list", "element-id": 4, "element": "string", "element-required": False})
    return {
        "format-version": 2,
        "table-uuid": "8c5a4fd1-12b1-4d1c-9f0e-0a4cf9a3b3a1",
        "location": "file:///w/db/t",
        "last-sequence-number": snapshots,
        "last-updated-ms": 1_790_000_001_000,
        "last-column-id": 4,
        "schemas": [schema(0, field(1, "a"), field(2, "b", "timestamptz")), schema(1, field(1, "a"), nested)],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {"p": str(snapshots)},
        "current-snapshot-id": snapshots or None,
        "snapshots": [snapshot(number) for number in range(1, snapshots + 1)],
        "refs": {"main": {"snapshot-id": snapshots, "type": "branch"}} if snapshots else {},
    }


def text(said: Json) -> bytes:
    return json.dumps(said).encode()


KNOWN = read_metadata(text(metadata(3)), None)


def parsed(said: Json) -> TableMetadata:
    return TableMetadataUtil.parse_raw(json.dumps(said))


def check(said: Json) -> TableMetadata:
    """What is read is what pyiceberg reads, also when it is written again."""
    found, expected = read_metadata(text(said), KNOWN), parsed(said)
    assert found == expected
    assert found.model_dump_json() == expected.model_dump_json()
    return found


@pytest.mark.parametrize("snapshots", [0, 1, 2, 3, 4, 9])
def test_what_both_versions_have_is_taken_over(snapshots: int) -> None:
    found = check(metadata(snapshots))
    both = min(3, snapshots)
    assert all(new is old for new, old in zip(found.snapshots[:both], KNOWN.snapshots, strict=False))
    assert found.schemas[0] is KNOWN.schemas[0]
    assert len(found.snapshots) == snapshots


ALTERATIONS: dict[str, Callable[[Json], object]] = {
    "another file": lambda said: said["snapshots"][1].update({"manifest-list": "file:///elsewhere.avro"}),
    "another time": lambda said: said["snapshots"][1].update({"timestamp-ms": 5}),
    "another parent": lambda said: said["snapshots"][1].update({"parent-snapshot-id": 7}),
    "no parent": lambda said: said["snapshots"][1].pop("parent-snapshot-id"),
    "another number": lambda said: said["snapshots"][1].update({"sequence-number": 17}),
    "another schema": lambda said: said["snapshots"][1].update({"schema-id": 1}),
    "more in the summary": lambda said: said["snapshots"][1]["summary"].update({"x": "y"}),
    "another operation": lambda said: said["snapshots"][1]["summary"].update({"operation": "overwrite"}),
    "no summary": lambda said: said["snapshots"][1].pop("summary"),
    "rows with ids": lambda said: said["snapshots"][1].update({"first-row-id": 5}),
}


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_a_snapshot_that_is_said_to_be_otherwise_is_read_as_it_is_said(alteration: str) -> None:
    said = metadata(3)
    ALTERATIONS[alteration](said)
    found = check(said)
    assert found.snapshots[1] is not KNOWN.snapshots[1]
    assert found.snapshots[2] is KNOWN.snapshots[2]


FIELDS: dict[str, Callable[[Json], object]] = {
    "another name": lambda one: one["fields"][0].update(name="z"),
    "another type": lambda one: one["fields"][1].update(type="timestamp"),
    "required": lambda one: one["fields"][0].update(required=True),
    "a word about it": lambda one: one["fields"][0].update(doc="what it is"),
    "a default": lambda one: one["fields"][0].update({"initial-default": "x"}),
    "another id": lambda one: one["fields"][1].update(id=9),
    "a column more": lambda one: one["fields"].append(field(5, "n")),
    "a column less": lambda one: one["fields"].pop(),
    "a key": lambda one: [one.update({"identifier-field-ids": [1]}), one["fields"][0].update(required=True)],
}


@pytest.mark.parametrize("alteration", FIELDS)
def test_a_schema_that_is_said_to_be_otherwise_is_read_as_it_is_said(alteration: str) -> None:
    said = metadata(3)
    FIELDS[alteration](said["schemas"][0])
    assert check(said).schemas[0] is not KNOWN.schemas[0]


def test_nothing_is_taken_over_from_a_table_that_was_there_before() -> None:
    said = metadata(3) | {"table-uuid": "11111111-12b1-4d1c-9f0e-0a4cf9a3b3a1"}
    found = check(said)
    assert not any(new is old for new in found.snapshots for old in KNOWN.snapshots)
    assert found.schemas[0] is not KNOWN.schemas[0]


def test_the_version_at_hand_stays_as_it_was() -> None:
    before = copy.deepcopy(json.loads(KNOWN.model_dump_json()))
    said = metadata(5)
    said["snapshots"][0]["summary"]["x"] = "y"
    check(said)
    assert json.loads(KNOWN.model_dump_json()) == before


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"5",
        b"[]",
        b"null",
        b"{}",
        text({"table-uuid": str(KNOWN.table_uuid)}),
        text(metadata(3) | {"snapshots": [5]}),
        text(metadata(3) | {"snapshots": [{"snapshot-id": []}]}),
        text(metadata(3) | {"schemas": 5}),
        text(metadata(3) | {"schemas": [{"schema-id": 0, "type": "struct", "fields": [5]}]}),
        text(metadata(3) | {"format-version": 7}),
    ],
)
def test_what_is_no_metadata_is_refused_as_without_a_version_at_hand(wrong: bytes) -> None:
    with pytest.raises((ValueError, ValidationError)):
        read_metadata(wrong, None)
    with pytest.raises((ValueError, ValidationError)):
        read_metadata(wrong, KNOWN)
