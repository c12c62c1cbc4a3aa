"""A home whose topics all have the same data, and ways to damage one of them; each tells how it is mended."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import EqualTo, Reference
from pyiceberg.expressions.literals import literal
from pyiceberg.table import Table
from pyiceberg.table.update import SetCurrentSchemaUpdate, SetSnapshotRefUpdate
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType
from tests.e2e.cli import CommandLine, body, curated_schema_of

from lean_ops.lake.local_files import local_path
from lean_ops.model.batch import Zone
from lean_ops.model.tables import TableName
from lean_ops.settings import load_settings
from lean_ops.state.port import Lease
from lean_ops.wiring import Services

Mend = Callable[[], None]
COLUMNS = {"a": {"type": "INT"}, "b": {"json_path": "$.b.c", "type": "STRING"}}


def _message(message_id: str, payload: Any, key: str, day: int = 3) -> str:
    return body(message_id, payload, idempotency_key=key, publish_time=f"2026-02-0{day}T10:00:00Z")


DAY_ONE = [
    _message("m1", {"a": 1, "b": {"c": "x"}}, "k1"),
    _message("m2", {"a": 2}, "k2"),
    _message("m2", {"a": 2}, "k2"),
    _message("bad1", "{", "k3"),
    _message("wrong1", {"a": "no number"}, "k4"),
    "no message",
]
DAY_TWO = [
    _message("m1", {"a": "a late copy"}, "k1"),
    _message("bad1", {"a": "a copy of a refused one"}, "k3"),
    _message("m3", {"a": 3, "new": True}, "k1", day=4),
    _message("m4", {"a": 4}, "k5"),
    _message("bad2", "[]", "k6"),
    _message("wrong2", {"a": "1.5"}, "k7"),
]


@dataclass
class DamagedHome:
    """A home, its topics, and the memory of how each of its damages is mended."""

    folder: Path
    mends: dict[str, Mend] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.folder / "home"

    @property
    def command_line(self) -> CommandLine:
        return CommandLine(self.path)

    @cached_property
    def services(self) -> Services:
        return Services(load_settings({"home": self.path}, environ={}))

    def begin(self, topics: dict[str, tuple[str, ...]]) -> None:
        """Topics with an open gate as far as the given zones, and the first day's messages in RAW."""
        self.services.lake.ensure_shared()
        for topic, zones in topics.items():
            self.submit(topic, zones)
            self.ingest(topic, DAY_ONE)

    def submit(self, topic: str, zones: tuple[str, ...]) -> None:
        schema = json.loads(curated_schema_of(topic, COLUMNS)) | {"zones": zones}
        content = json.dumps(schema).encode()
        self.services.submissions.submit(topic, content, submitted_by="test", now=self.services.clock())

    def forget_state(self) -> None:
        """Delete the state store, and everything that this process has open."""
        for file in self.path.glob("state.db*"):
            file.unlink()
        del self.services

    def ingest(self, topic: str, bodies: list[str]) -> None:
        file = self.folder / "bodies.jsonl"
        file.write_text("\n".join(bodies) + "\n")
        self.services.intake(topic, topic).take(topic, [str(file)])

    def standardize_nothing(self, topic: str) -> None:
        """A Standardized batch without rows, and Curated has not read it yet."""
        self.ingest(topic, ["no message"])
        services, gate = self.services, self.services.gate.gate(topic)
        lease = services.state.acquire(topic, services.presence.announce(), services.clock())
        assert isinstance(lease, Lease)
        for planned in services.planner.plan_hop(topic, Zone.STANDARDIZED, gate).batches:
            runner = services.batch_runner()
            runner.run(planned, runner.standing(planned.batch), gate, lease, "by hand")
        services.state.release(lease)

    def damage(self, topic: str, how: Callable[[DamagedHome, str], Mend]) -> None:
        self.mends[topic] = how(self, topic)

    # tables

    def name(self, zone: str, topic: str) -> TableName:
        names = self.services.lake.names
        return {"raw": names.raw, "standardized": names.standardized, "curated": names.curated}[zone](topic)

    def table(self, zone: str, topic: str) -> Table:
        return self.services.lake.load(self.name(zone, topic))

    def seen(self, topic: str) -> dict[str, Any]:
        """Everything that a reader can see of a topic, in words that all topics share."""
        found = {table: self._rows(sql, topic) for table, sql in _SEEN.items()}
        found["branches"] = sorted(self.table("standardized", topic).refs())
        if self.services.lake.exists(self.name("curated", topic)):
            found["curated"] = self._rows("SELECT idempotency_key, message_id, a, b FROM curated.{topic}", topic)
            found["branches"] += sorted(self.table("curated", topic).refs())
        return found

    def _rows(self, sql: str, topic: str) -> list[str]:
        from lean_ops.lake.query import QuerySession

        session = QuerySession(self.services.lake.names, self.services.lake.file)
        rows = session.query(sql.format(topic=topic))
        return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


_SEEN = {
    "raw.dlq_errors": "SELECT message_id, error_type FROM raw.dlq_errors WHERE topic_name = '{topic}'",
    "standardized": "SELECT * EXCLUDE (topic_name, ingestion_ts, _batch_id) FROM standardized.{topic}",
    "standardized.parse_errors": (
        "SELECT message_id, error_type FROM standardized.parse_errors WHERE topic_name = '{topic}'"
    ),
    "curated.errors": "SELECT message_id, error_message FROM curated.errors WHERE topic_name = '{topic}'",
    "ledger": (
        "SELECT zone, records_in, inserted, updated, duplicates, superseded, errors FROM ops.reconciliation_log"
        " WHERE topic_name = '{topic}' AND kind = 'BATCH'"
    ),
    "drift": "SELECT kind, column_name FROM ops.drift_log WHERE topic_name = '{topic}'",
}


# files


def of_metadata(zone: str) -> Callable[[DamagedHome, str], Path]:
    """The current metadata file of a zone's table."""
    return lambda home, topic: local_path(home.table(zone, topic).metadata_location)


def of_data(zone: str) -> Callable[[DamagedHome, str], Path]:
    """A data file of a zone's table, the newest."""

    def find(home: DamagedHome, topic: str) -> Path:
        files = [local_path(task.file.file_path) for task in home.table(zone, topic).scan().plan_files()]
        return max(files, key=lambda file: file.stat().st_mtime_ns)

    return find


def of_manifest(zone: str) -> Callable[[DamagedHome, str], Path]:
    """A manifest of a zone's table."""

    def find(home: DamagedHome, topic: str) -> Path:
        table = home.table(zone, topic)
        return local_path(table.current_snapshot().manifests(table.io)[0].manifest_path)

    return find


def of_manifest_list(zone: str) -> Callable[[DamagedHome, str], Path]:
    """The manifest list of a zone's table."""
    return lambda home, topic: local_path(home.table(zone, topic).current_snapshot().manifest_list)


def of_schema(home: DamagedHome, topic: str) -> Path:
    """The active schema's file."""
    return home.path / "schemas" / topic / "active" / "schema.json"


def truncated(find: Callable[[DamagedHome, str], Path]) -> Callable[[DamagedHome, str], Mend]:
    """A file loses its second half."""
    return lambda home, topic: _replaced(find(home, topic), lambda content: content[: len(content) // 2])


def garbled(find: Callable[[DamagedHome, str], Path]) -> Callable[[DamagedHome, str], Mend]:
    """A file becomes something else."""
    return lambda home, topic: _replaced(find(home, topic), lambda content: b"\x00\xff" * (len(content) // 2))


def deleted(find: Callable[[DamagedHome, str], Path]) -> Callable[[DamagedHome, str], Mend]:
    """A file is gone."""

    def damage(home: DamagedHome, topic: str) -> Mend:
        file = find(home, topic)
        mend = _replaced(file, lambda content: content)
        file.unlink()
        return mend

    return damage


def _replaced(file: Path, change: Callable[[bytes], bytes]) -> Mend:
    content = file.read_bytes()
    file.write_bytes(change(content))
    return lambda: _put_back(file, content)


def _put_back(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def folder_deleted(zone: str) -> Callable[[DamagedHome, str], Mend]:
    """All files of a zone's table are gone."""

    def damage(home: DamagedHome, topic: str) -> Mend:
        folder = local_path(home.table(zone, topic).location())
        kept = home.folder / "backup" / zone / topic
        shutil.copytree(folder, kept)
        shutil.rmtree(folder)
        return lambda: shutil.copytree(kept, folder) and None

    return damage


# the catalog and main


def dropped(zone: str) -> Callable[[DamagedHome, str], Mend]:
    """A table is dropped; its files stay."""

    def damage(home: DamagedHome, topic: str) -> Mend:
        name = home.name(zone, topic)
        newest = home.table(zone, topic).metadata_location
        home.services.lake.catalog.drop_table((name.database, name.table))
        return lambda: home.services.lake.catalog.register_table((name.database, name.table), newest) and None

    return damage


def expired(zone: str) -> Callable[[DamagedHome, str], Mend]:
    """Every snapshot but main's is expired; the metadata file of before has them still."""

    def damage(home: DamagedHome, topic: str) -> Mend:
        table, name = home.table(zone, topic), home.name(zone, topic)
        before, head = table.metadata_location, table.current_snapshot().snapshot_id
        older = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot.snapshot_id != head]
        table.maintenance.expire_snapshots().by_ids(older).commit()

        def mend() -> None:
            home.services.lake.catalog.drop_table((name.database, name.table))
            home.services.lake.catalog.register_table((name.database, name.table), before)

        return mend

    return damage


def changed(zone: str, change: Callable[[Table], None]) -> Callable[[DamagedHome, str], Mend]:
    """Somebody commits to a zone's table; main can be moved back to where it was."""

    def damage(home: DamagedHome, topic: str) -> Mend:
        table = home.table(zone, topic)
        head = table.current_snapshot().snapshot_id
        change(table)
        return lambda: _move_main(home, home.name(zone, topic), head)

    return damage


def _move_main(home: DamagedHome, name: TableName, snapshot_id: int) -> None:
    update = SetSnapshotRefUpdate.model_validate({"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id})
    home.services.lake.catalog.commit_table(home.services.lake.load(name), (), (update,))


def delete_a_row(table: Table) -> None:
    table.delete(EqualTo(term=Reference("message_id"), value=literal("m1")))


def append_a_row(table: Table) -> None:
    row = {**table.scan().to_arrow().to_pylist()[0], "message_id": "strange", "_batch_id": None}
    known = {name: value for name, value in row.items() if name in table.schema().column_names}
    table.append(pa.Table.from_pylist([known], schema=table.schema().as_arrow()))


def roll_back(table: Table) -> None:
    parent = table.current_snapshot().parent_snapshot_id
    table.manage_snapshots().rollback_to_snapshot(parent).commit()


# columns


def altered(zone: str, *changes: Callable[[Any], Any]) -> Callable[[DamagedHome, str], Mend]:
    """Somebody alters columns, one commit after the other; the table still has its earlier schema."""

    def damage(home: DamagedHome, topic: str) -> Mend:
        schema_id = home.table(zone, topic).schema().schema_id
        for change in changes:
            with home.table(zone, topic).update_schema(allow_incompatible_changes=True) as update:
                change(update)
        back = SetCurrentSchemaUpdate.model_validate({"schema-id": schema_id})
        return lambda: home.services.lake.catalog.commit_table(home.table(zone, topic), (), (back,)) and None

    return damage


def drop(column: str) -> Callable[[Any], Any]:
    return lambda update: update.delete_column(column)


def rename(column: str) -> Callable[[Any], Any]:
    return lambda update: update.rename_column(column, f"{column}_renamed")


def add_int(column: str, doc: str | None) -> Callable[[Any], Any]:
    return lambda update: update.add_column(column, IntegerType(), doc=doc)


def without_comment(column: str) -> Callable[[Any], Any]:
    return lambda update: update.update_column(column, doc="")


def sorted_by(zone: str, column: str) -> Callable[[DamagedHome, str], Mend]:
    """A table gets a sort order, which does no harm."""

    def damage(home: DamagedHome, topic: str) -> Mend:
        with home.table(zone, topic).update_sort_order() as update:
            update.asc(column, IdentityTransform())
        return lambda: None

    return damage
