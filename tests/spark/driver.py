"""How a test handles topics: put messages into RAW, run, look at the tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from lean_ops.lake.query import QuerySession
from lean_ops.lake.snapshots import history_of
from lean_ops.model.curated_layout import CURATED_RULE, LayoutRule
from lean_ops.model.registry import Gate
from lean_ops.model.schema import Schema, parse_schema
from lean_ops.operate.batch import Listener
from lean_ops.operate.plan import Planner
from lean_ops.operate.run import TopicOutcome
from lean_ops.wiring import Services

DAY_ONE = datetime(2026, 2, 3, 10, 0, tzinfo=UTC)


@dataclass
class OpenGate:
    """A gate that lets every topic through: to Standardized with the leaves it declares, or as its schema says."""

    topics: set[str] = field(default_factory=set)
    declared: tuple[str, ...] = ()
    schemas: dict[str, Schema] = field(default_factory=dict)

    def gate(self, topic: str) -> Gate:
        schema = self.schemas.get(topic)
        if schema is None:
            return Gate(open=True, reason="", schema_version="1.0.0", declared=self.declared)
        return Gate(True, "", schema.schema_version, schema.declared_pointers(), schema.is_curated)

    def gates(self) -> dict[str, Gate]:
        return {topic: self.gate(topic) for topic in self.topics}

    def schema_of(self, topic: str, version: str) -> Schema:
        assert self.schemas[topic].schema_version == version
        return self.schemas[topic]


@dataclass
class TopicDriver:
    """A topic as a test handles it: put messages into RAW, run, look at the tables."""

    services: Services
    name: str
    gate: OpenGate

    def put(self, *messages: dict[str, Any]) -> int:
        """Append messages to RAW in one commit; the snapshot."""
        table = self.services.lake.ensure_raw(self.name)
        defaults = {"topic_name": self.name, "publish_time": DAY_ONE, "ingestion_ts": 100}
        rows = [{**defaults, **message} for message in messages]
        table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
        return table.current_snapshot().snapshot_id

    def run(self, on_step: Listener | None = None, rule: LayoutRule = CURATED_RULE) -> TopicOutcome | None:
        """Plan and execute this topic alone; None when there was nothing to do."""
        outcomes = run_topics(self.services, self.gate, [self.name], on_step, rule)
        return outcomes.get(self.name)

    def standardized(self) -> list[dict[str, Any]]:
        """The Standardized rows by message id, NULLs left out."""
        rows = self.services.lake.load(self.services.lake.names.standardized(self.name)).scan().to_arrow().to_pylist()
        return sorted(({k: v for k, v in row.items() if v is not None} for row in rows), key=lambda r: r["message_id"])

    def use_schema(self, payload_columns: dict[str, Any], **more: Any) -> None:
        """Give the topic a schema that leads to Curated."""
        version = {"schema_version": "1.0.0", "table_name": self.name, "envelope_columns": {}}
        text = json.dumps({**version, "payload_columns": payload_columns, **more})
        schema = parse_schema(text, self.name)
        self.services.schema_tables.ensure(schema)
        self.gate.schemas[self.name] = schema

    def curated(self) -> dict[str, dict[str, Any]]:
        """The Curated rows by key, without the envelope's and the audit's fixed parts."""
        session = QuerySession(self.services.lake.names, self.services.lake.file)
        rows = session.query(f"SELECT * FROM curated.{self.name}")  # noqa: S608  a test's own name
        found = {row["idempotency_key"]: row for row in rows}
        assert len(found) == len(rows), "a key is there twice"
        return found

    def payload_rows(self) -> dict[str, dict[str, str]]:
        """Payload columns by message id."""
        envelope = {"topic_name", "message_id", "idempotency_key", "period_reference", "correlation_id"}
        hidden = envelope | {"publish_time", "ingestion_ts", "_batch_id"}
        return {
            row["message_id"]: {key: value for key, value in row.items() if key not in hidden}
            for row in self.standardized()
        }

    def shared(self, table: str) -> list[dict[str, Any]]:
        """This topic's rows of a shared table."""
        names = self.services.lake.names
        places = {"parse_errors": names.parse_errors, "errors": names.curated_errors}
        name = places[table] if table in places else names.ops(table)
        rows = self.services.lake.load(name).scan().to_arrow().to_pylist()
        return [row for row in rows if row["topic_name"] == self.name]

    def checkpoint(self) -> int | None:
        """How far the table's own history says it is."""
        table = self.services.lake.load(self.services.lake.names.standardized(self.name))
        checkpoint = history_of(table).checkpoint()
        return checkpoint.to_snapshot if checkpoint else None


def run_topics(
    services: Services,
    gate: OpenGate,
    topics: list[str],
    on_step: Listener | None = None,
    rule: LayoutRule = CURATED_RULE,
) -> dict[str, TopicOutcome]:
    """Run several topics at once in the tier's Spark application."""
    from lean_ops.operate.hop_run import RunParts
    from lean_ops.operate.leases import LeaseKeeper
    from lean_ops.operate.run import Run

    gate.topics |= set(topics)
    planner = Planner(services.lake.file, services.lake.names, services.state, gate.gates)
    plan = planner.plan(topics)
    keeper = LeaseKeeper(services.state, services.presence.announce(), services.clock, 60)
    parts = RunParts(
        services.batch_runner(on_step, gate.schema_of),
        services.books,
        services.state,
        keeper,
        gate.gate,
        planner.plan_hop,
        lambda _: None,
        services.sessions.cancel_all,
        services.clock,
        look_after_curated=services.relayout(on_step, gate.schema_of, rule).look_after,
        finish_rebuild=services.rebuild_switch(schema_of=gate.schema_of).finish,
    )
    return {outcome.topic: outcome for outcome in Run(parts, 4, 3).execute(plan)}


def at(days: float) -> datetime:
    """A publish time, in days after the first."""
    return DAY_ONE + timedelta(days=days)
