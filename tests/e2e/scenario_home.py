"""One home for all scenarios: commands that are remembered under a name, and the lake as one query sees it."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, TypeAlias

from tests.e2e.cli import CommandLine

from lean_ops.model.batch import Counts

Row: TypeAlias = dict[str, Any]
Command: TypeAlias = tuple[str, ...]

_ZONES = {"iceberg_raw_db": "raw", "iceberg_standardized_db": "standardized", "iceberg_curated_db": "curated"}
_COUNTS = ("records_in", "inserted", "updated", "duplicates", "superseded", "errors")


@dataclass(frozen=True)
class Moment:
    """Every table of the lake, and every key's latest Standardized row, as one query saw them."""

    tables: dict[str, list[Row]]

    def rows(self, table: str, topic: str | None = None, by: str = "message_id") -> list[Row]:
        """A table's rows in the order of a column; of a shared table those of a topic."""
        found = [row for row in self.tables[table] if topic in {None, row["topic_name"]}]
        return sorted(found, key=lambda row: str(row[by]).removesuffix("Z"))  # a whole second comes before its parts

    def picked(self, table: str, *columns: str, topic: str | None = None, by: str = "message_id") -> list[Any]:
        """Some columns of a table's rows: tuples, or plain values of one column."""
        rows = self.rows(table, topic, by)
        return [row[columns[0]] if len(columns) == 1 else tuple(row[name] for name in columns) for row in rows]

    def payload(self, table: str) -> dict[str, Row]:
        """By message, what a zone's table has of its payload; a column without a value is left out."""
        return {row["message_id"]: _payload(row) for row in self.rows(table)}

    def rows_of(self, topic: str) -> dict[str, int]:
        """How many rows of a topic each table has; tables that have none are left out."""
        own = (f"raw.{topic}_staging", f"standardized.{topic}", f"curated.{topic}")
        names = [name for name in (*own, *SHARED) if name in self.tables]
        found = {name: len(self.rows(name, topic, by="topic_name")) for name in names}
        return {name: number for name, number in found.items() if number}

    def zones(self, topic: str) -> dict[str, int]:
        """How many rows a topic has in each zone; none where there is no table."""
        names = {"raw": f"raw.{topic}_staging", "standardized": f"standardized.{topic}", "curated": f"curated.{topic}"}
        return {zone: len(self.tables.get(name, [])) for zone, name in names.items()}

    def ledger(self, topic: str) -> list[tuple[str, Counts]]:
        """A topic's batches in the order in which they were booked."""
        lines = self.rows("ops.reconciliation_log", topic, by="recorded_at")
        return [(line["zone"], counts_of(line)) for line in lines if line["kind"] == "BATCH"]

    def drift(self, topic: str) -> list[tuple[Any, ...]]:
        """A topic's drift: kind, pointer, column, old and new value, records; by batch, then by pointer."""
        columns = ("kind", "json_pointer", "column_name", "old_value", "new_value", "records")
        rows = self.rows("ops.drift_log", topic, by="detected_at")
        batches = list(dict.fromkeys(row["batch_id"] for row in rows))
        rows.sort(key=lambda row: (batches.index(row["batch_id"]), row["json_pointer"], row["kind"]))
        return [tuple(row[name] for name in columns) for row in rows]

    def alerts(self, topic: str) -> list[tuple[Any, ...]]:
        """A topic's alerts in their order: kind, severity, value, threshold, message."""
        return self.picked(
            "ops.alerts", "kind", "severity", "value", "threshold", "message", topic=topic, by="opened_at"
        )


SHARED = (
    *("raw.dlq_errors", "standardized.parse_errors", "curated.errors", "ops.reconciliation_log"),
    *("ops.job_run_history", "ops.drift_log", "ops.schema_versions", "ops.alerts"),
    *("ops.topic_registry", "ops.maintenance_log"),
)
_NOT_PAYLOAD = {
    *("topic_name", "message_id", "idempotency_key", "period_reference", "correlation_id", "publish_time"),
    *("ingestion_ts", "first_seen_ts", "last_updated_ts", "_schema_version", "_batch_id"),
}


def _payload(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in _NOT_PAYLOAD and value is not None}


def counts_of(line: Row) -> Counts:
    """The counts of a ledger row."""
    return Counts(*(line[name] for name in _COUNTS))


@dataclass
class Home:
    """A home, what each command on it said, and the lake at named moments."""

    folder: Path
    said: dict[str, CompletedProcess[str]] = field(default_factory=dict)
    moments: dict[str, Moment] = field(default_factory=dict)
    with_spark: list[str] = field(default_factory=list)
    changed: dict[str, set[str]] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.folder / "home"

    @property
    def command_line(self) -> CommandLine:
        return CommandLine(self.path)

    def do(self, name: str, *arguments: str) -> None:
        """Run a command; what it said is kept under the name, which files it changed, and whether it started Spark."""
        before, spark_starts = self._files(), self._spark_starts()
        self.said[name] = self.command_line.start(*arguments)
        self.changed[name] = {file for file, _ in before.items() ^ self._files().items()}
        if self._spark_starts() != spark_starts:
            self.with_spark.append(name)

    def do_all(self, commands: dict[str, Command]) -> None:
        """Run commands that have nothing to do with each other, two at a time."""
        with ThreadPoolExecutor(2) as pool:
            done = pool.map(lambda arguments: self.command_line.start(*arguments), commands.values())
            self.said |= dict(zip(commands, done, strict=True))

    def file(self, name: str, content: str) -> str:
        path = self.folder / name
        path.write_text(content)
        return str(path)

    def text(self, name: str, code: int = 0) -> str:
        """Everything that a command printed; its exit code must be the expected one."""
        done = self.said[name]
        assert done.returncode == code, f"{name}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def json(self, name: str, code: int = 0) -> Any:
        """The document that a command printed."""
        self.text(name, code)
        return json.loads(self.said[name].stdout)

    def of_topic(self, name: str, topic: str) -> Row:
        """A topic's line of a listing."""
        (line,) = (line for line in self.json(name) if line["topic"] == topic)
        return dict(line)

    def outcome(self, name: str, topic: str) -> list[tuple[str, Counts]]:
        """What a run said that it did with a topic: its batches in their order."""
        (outcome,) = (outcome for outcome in self.json(name)["topics"] if outcome["topic"] == topic)
        assert (outcome["status"], outcome["reason"]) == ("SUCCEEDED", None)
        return [(batch["zone"], Counts(**batch["counts"])) for batch in outcome["batches"]]

    def problems(self, name: str) -> list[tuple[str, str]]:
        """Where and why a submission was refused, as it told."""
        document = self.json(name, code=1)
        assert document["activated"] is False
        return [(problem["path"], problem["message"]) for problem in document["problems"]]

    def failed(self, topic: str) -> tuple[str, list[tuple[str, str]]]:
        """A topic's refused schema as it is kept, and the problems beside it."""
        folder = self.path / "schemas" / topic / "failed"
        errors = json.loads((folder / "error.json").read_bytes())["errors"]
        return (folder / "schema.json").read_text(), [(error["path"], error["message"]) for error in errors]

    def look(self, name: str) -> None:
        """Keep the whole lake as it is now."""
        tables = [*_tables(self.path), *(f"{table}_latest" for table in _tables(self.path) if _is_topic(table))]
        lists = ", ".join(f'(SELECT list(t) FROM {table} AS t) AS "{table}"' for table in tables)  # noqa: S608  the catalog's names
        (row,) = self.command_line.json("query", f"SELECT {lists}")
        self.moments[name] = Moment({table: rows or [] for table, rows in row.items()})

    def _files(self) -> dict[str, int]:
        """Every file of the home with its time of change, but for what SQLite keeps beside its databases."""
        found = [path for path in self.path.rglob("*") if path.is_file() and ".db" not in path.name]
        return {str(path.relative_to(self.path)): path.stat().st_mtime_ns for path in found}

    def _spark_starts(self) -> int:
        """Changes with every start of Spark, which writes its log settings anew."""
        settings = self.path / "logs" / "log4j2.properties"
        return settings.stat().st_mtime_ns if settings.exists() else 0


def _tables(home: Path) -> list[str]:
    """The names that `query` has for the catalog's tables."""
    with closing(sqlite3.connect(f"file:{home / 'catalog.db'}?mode=ro", uri=True)) as db:
        found = db.execute("SELECT table_namespace, table_name, iceberg_type FROM iceberg_tables")
        return sorted(f"{_ZONES.get(database, 'ops')}.{table}" for database, table, kind in found if kind != "VIEW")


def _is_topic(table: str) -> bool:
    return table.startswith("standardized.") and table != "standardized.parse_errors"
