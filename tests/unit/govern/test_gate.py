from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.registry import put

from lean_ops.govern.gate import RegistryGate
from lean_ops.model.errors import TerminalError
from lean_ops.model.problem import SchemaError
from lean_ops.model.registry import Flow, Gate, RegistryItem, Status

if TYPE_CHECKING:
    from lean_ops.govern.store import SchemaFolder
    from lean_ops.state.sqlite import SqliteStateStore

SCHEMA = (
    b'{"schema_version": "1.2.0", "table_name": "t", "envelope_columns": {},'
    b' "payload_columns": {"a": {"json_path": "$.x.y"}, "b": {}}}'
)


def with_keys(**keys: Any) -> bytes:
    return json.dumps({**json.loads(SCHEMA), **keys}).encode()


def put_active(folder: SchemaFolder, topic: str, content: bytes = SCHEMA) -> None:
    folder.active_file(topic).parent.mkdir(parents=True)
    folder.active_file(topic).write_bytes(content)


SHUT = [
    (RegistryItem("t"), "no schema deployed"),
    (RegistryItem("t", flow=Flow.PAUSED, flow_reason="night"), "no schema deployed"),
    (RegistryItem("t", Status.READY, Flow.PAUSED, "night"), "paused: night"),
    (RegistryItem("t", Status.REBUILDING, Flow.PAUSED), "paused: no reason given"),
    (RegistryItem("t", Status.DISABLED), "disabled"),
    (RegistryItem("t", Status.DISABLED, Flow.PAUSED, "night"), "disabled"),
    (RegistryItem("t", Status.ERROR, last_error="$.x: wrong"), "its only schema failed: $.x: wrong"),
]


@pytest.mark.parametrize(("item", "reason"), SHUT)
def test_a_shut_gate_says_why_and_opens_no_file(
    item: RegistryItem, reason: str, registry: SqliteStateStore, folder: SchemaFolder
) -> None:
    put(registry, item)
    gate = RegistryGate(registry, folder)
    assert gate.gate("t") == Gate(False, reason)
    assert gate.gates() == {"t": Gate(False, reason)}


def test_an_unknown_topic_has_no_schema(registry: SqliteStateStore, folder: SchemaFolder) -> None:
    gate = RegistryGate(registry, folder)
    assert gate.gate("t") == Gate(False, "no schema deployed")
    assert gate.gates() == {}


@pytest.mark.parametrize("status", [Status.READY, Status.REBUILDING])
def test_an_open_gate_has_its_version_and_when_asked_its_pointers(
    status: Status, registry: SqliteStateStore, folder: SchemaFolder
) -> None:
    put(registry, RegistryItem("t", status, schema_version="1.2.0", curated=True))
    put_active(folder, "t")
    gate = RegistryGate(registry, folder)
    assert gate.gates() == {"t": Gate(True, "schema 1.2.0", "1.2.0", curated=True)}
    assert gate.gate("t") == Gate(True, "schema 1.2.0", "1.2.0", ("/x/y",), curated=True)


@pytest.mark.parametrize("curated", [True, False])
def test_a_gate_asked_with_all_others_leads_to_curated_if_the_registry_says_so(
    curated: bool, registry: SqliteStateStore, folder: SchemaFolder
) -> None:
    put(registry, RegistryItem("t", Status.READY, schema_version="1.2.0", curated=curated))
    assert RegistryGate(registry, folder).gates()["t"].curated is curated


@pytest.mark.parametrize(("zones", "curated"), [(["standardized"], False), (["standardized", "curated"], True)])
@pytest.mark.parametrize("registered", [True, False])
def test_a_gate_asked_alone_leads_to_curated_if_the_file_says_so(
    zones: list[str], curated: bool, registered: bool, registry: SqliteStateStore, folder: SchemaFolder
) -> None:
    put(registry, RegistryItem("t", Status.READY, schema_version="1.2.0", curated=registered))
    put_active(folder, "t", with_keys(zones=zones))
    assert RegistryGate(registry, folder).gate("t").curated is curated


def test_a_shut_gate_leads_nowhere(registry: SqliteStateStore, folder: SchemaFolder) -> None:
    put(registry, RegistryItem("t", Status.READY, Flow.PAUSED, "night", "1.2.0", curated=True))
    gate = RegistryGate(registry, folder)
    assert (gate.gate("t").curated, gate.gates()["t"].curated) == (False, False)


def test_the_file_decides_the_version_when_the_registry_is_behind(
    registry: SqliteStateStore, folder: SchemaFolder
) -> None:
    put(registry, RegistryItem("t", Status.READY, schema_version="1.1.0"))
    put_active(folder, "t")
    assert RegistryGate(registry, folder).gate("t").schema_version == "1.2.0"


def test_gates_of_all_topics_read_no_schema_file(registry: SqliteStateStore, folder: SchemaFolder) -> None:
    for number in range(5):
        put(registry, RegistryItem(f"t{number}", Status.READY, schema_version="1.0.0"))
        put_active(folder, f"t{number}", b"not even JSON")
    assert set(RegistryGate(registry, folder).gates().values()) == {Gate(True, "schema 1.0.0", "1.0.0")}


def test_an_open_gate_without_its_file_is_an_error(registry: SqliteStateStore, folder: SchemaFolder) -> None:
    put(registry, RegistryItem("t", Status.READY, schema_version="1.2.0"))
    with pytest.raises(TerminalError, match=r"its file is gone; expected .*active/schema.json") as caught:
        RegistryGate(registry, folder).gate("t")
    assert caught.value.where == "topic 't'"


def test_an_open_gate_with_a_broken_file_is_an_error(registry: SqliteStateStore, folder: SchemaFolder) -> None:
    put(registry, RegistryItem("t", Status.READY, schema_version="1.2.0"))
    put_active(folder, "t", b"{}")
    with pytest.raises(SchemaError, match=r"active/schema.json: 4 problems"):
        RegistryGate(registry, folder).gate("t")


def test_the_gate_does_not_import_the_schema_model_to_be_asked() -> None:
    check = "import sys, lean_ops.govern.gate, lean_ops.govern.store; sys.exit('lean_ops.model.schema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


# a schema by its version


def put_archived(folder: SchemaFolder, name: str, content: bytes) -> None:
    file = folder.root / "t" / "archive" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def test_the_active_version_is_found_in_its_file(registry: SqliteStateStore, folder: SchemaFolder) -> None:
    put_active(folder, "t")
    put_archived(folder, "1.2.0_20260101T000000Z.json", b"not the one that is asked for")
    schema = RegistryGate(registry, folder).schema_of_version("t", "1.2.0")
    assert (schema.schema_version, schema.declared_pointers()) == ("1.2.0", ("/x/y",))


def test_an_older_version_is_found_in_the_archive(registry: SqliteStateStore, folder: SchemaFolder) -> None:
    put_active(folder, "t")
    for version in ("1.1.0", "1.1.1", "11.1.0"):
        put_archived(folder, f"{version}_20260101T000000Z.json", with_keys(schema_version=version))
    assert RegistryGate(registry, folder).schema_of_version("t", "1.1.0").schema_version == "1.1.0"


def test_of_several_archived_files_of_a_version_the_newest_counts(
    registry: SqliteStateStore, folder: SchemaFolder
) -> None:
    put_active(folder, "t")
    for month, description in (("01", "older"), ("03", "newest"), ("02", "newer")):
        content = with_keys(schema_version="1.1.0", description=description)
        put_archived(folder, f"1.1.0_2026{month}01T000000Z.json", content)
    assert RegistryGate(registry, folder).schema_of_version("t", "1.1.0").description == "newest"


def test_a_version_that_is_nowhere_is_an_error_that_names_it(registry: SqliteStateStore, folder: SchemaFolder) -> None:
    put_active(folder, "t")
    put_archived(folder, "1.1.0_20260101T000000Z.json", with_keys(schema_version="1.1.0"))
    with pytest.raises(
        TerminalError, match=r"schema 1\.0\.0 is neither active nor archived; found active: 1\.2\.0"
    ) as told:
        RegistryGate(registry, folder).schema_of_version("t", "1.0.0")
    assert told.value.where == "topic 't'"
    assert "archive folder" in str(told.value.remedy)


def test_a_broken_archived_file_is_an_error_that_names_it(registry: SqliteStateStore, folder: SchemaFolder) -> None:
    put_active(folder, "t")
    put_archived(folder, "1.1.0_20260101T000000Z.json", b"{}")
    with pytest.raises(SchemaError, match=r"archive/1\.1\.0_20260101T000000Z\.json: 4 problems"):
        RegistryGate(registry, folder).schema_of_version("t", "1.1.0")
