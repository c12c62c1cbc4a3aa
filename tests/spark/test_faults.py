"""When something goes wrong with a batch: nothing half-done is seen, the reason is told, and the next run is right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo, Reference
from pyiceberg.expressions.literals import literal
from pyiceberg.types import StringType
from tests.spark.driver import TopicDriver

from lean_ops.ledger.books import RunStatus
from lean_ops.model.batch import Batch, Counts
from lean_ops.model.registry import Flow
from lean_ops.model.tables import TableName

pytestmark = pytest.mark.spark


def message(message_id: str, payload: str) -> dict[str, Any]:
    return {"message_id": message_id, "json_payload": payload}


def alerts(topic: TopicDriver) -> list[str]:
    return sorted(row["kind"] for row in topic.shared("alerts"))


def test_a_batch_that_does_not_balance_is_not_published_and_alerts(
    topic: TopicDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.put(message("m1", '{"a":1}'), message("m2", "{"))
    shared, append = topic.services.shared, topic.services.shared.append

    def lose_errors(name: TableName, parts: Iterable[Any]) -> int:
        return append(name, parts) if name != topic.services.lake.names.parse_errors else 0

    monkeypatch.setattr(shared, "append", lose_errors)
    outcome = topic.run()
    assert outcome is not None
    assert outcome.status is RunStatus.FAILED
    assert "does not balance and was not published; found 2 records in" in str(outcome.reason)
    assert (topic.standardized(), topic.checkpoint(), topic.shared("reconciliation_log")) == ([], None, [])
    assert alerts(topic) == ["UNBALANCED"]

    monkeypatch.undo()
    outcome = topic.run()
    assert outcome is not None
    assert outcome.batches[0].counts == Counts(records_in=2, inserted=1, errors=1)
    assert len(topic.shared("parse_errors")) == 1
    assert [row["status"] for row in topic.shared("job_run_history")].count("SUCCEEDED") == 1


def test_a_raw_table_that_somebody_deleted_from_is_refused_and_the_topic_paused_in_the_end(topic: TopicDriver) -> None:
    topic.put(message("m1", '{"a":1}'))
    assert topic.run() is not None
    topic.put(message("m2", '{"a":1}'))
    raw = topic.services.lake.load(topic.services.lake.names.raw(topic.name))
    raw.delete(EqualTo(term=Reference("message_id"), value=literal("m1")))
    for _ in range(3):
        outcome = topic.run()
        assert outcome is not None
        assert outcome.status is RunStatus.FAILED
        assert "expected append or replace only" in str(outcome.reason)
    assert "paused after 3 failures in a row" in str(outcome.reason)
    item = topic.services.state.item(topic.name)
    assert item is not None
    assert item.flow is Flow.PAUSED
    assert "3 failures in a row" in str(item.flow_reason)
    assert alerts(topic) == ["JOB_FAILED", "JOB_FAILED", "JOB_FAILED", "TOPIC_PAUSED"]
    assert [row["message_id"] for row in topic.standardized()] == ["m1"]


def test_a_runner_that_lost_its_lease_publishes_nothing(topic: TopicDriver) -> None:
    topic.put(message("m1", '{"a":1}'))

    def lose_the_lease(_: Batch, step: str) -> None:
        if step == "rows staged":
            db = topic.services.state._file.connection()
            db.execute("UPDATE locks SET owner = 'another', fence = fence + 1 WHERE topic_name = ?", (topic.name,))

    outcome = topic.run(lose_the_lease)
    assert outcome is not None
    assert outcome.status is RunStatus.FAILED
    assert "the lease was lost while working" in str(outcome.reason)
    assert topic.standardized() == []
    topic.services.state._file.connection().execute("UPDATE locks SET owner = NULL WHERE topic_name = ?", (topic.name,))
    outcome = topic.run()
    assert outcome is not None
    assert outcome.batches[0].counts == Counts(records_in=1, inserted=1)


def test_a_lost_state_store_costs_nothing_and_repeats_nothing(topic: TopicDriver) -> None:
    topic.put(message("m1", '{"a":1}'), message("m2", "{"))
    assert topic.run() is not None
    forget = "DELETE FROM checkpoints WHERE pipeline_id = ?"
    topic.services.state._file.connection().execute(forget, (f"standardization_{topic.name}",))
    topic.put(message("m1", '{"a":2}'), message("m3", '{"a":3}'))
    outcome = topic.run()
    assert outcome is not None
    assert [batch.counts for batch in outcome.batches] == [
        Counts(records_in=2, inserted=1, errors=1),
        Counts(records_in=2, inserted=1, duplicates=1),
    ]
    assert [row["a"] for row in topic.standardized()] == ["1", "3"]
    assert len(topic.shared("reconciliation_log")) == 2
    assert len(topic.shared("parse_errors")) == 1


def test_a_state_store_lost_between_publication_and_ledger_still_gets_its_ledger_row(topic: TopicDriver) -> None:
    class GoneError(Exception):
        pass

    def end(step: str) -> None:
        if step == "published":
            raise GoneError

    topic.put(message("m1", '{"a":1}'))
    outcome = topic.run(end)
    assert outcome is not None
    assert outcome.status is RunStatus.FAILED
    assert topic.shared("reconciliation_log") == []
    forget = "DELETE FROM checkpoints WHERE pipeline_id = ?"
    topic.services.state._file.connection().execute(forget, (f"standardization_{topic.name}",))
    assert topic.run() is not None
    assert [row["inserted"] for row in topic.shared("reconciliation_log")] == [1]
    assert topic.run() is None


def test_a_column_that_somebody_added_by_hand_keeps_its_name_and_stays_null(topic: TopicDriver) -> None:
    topic.put(message("m1", '{"a":1}'))
    assert topic.run() is not None
    table = topic.services.lake.load(topic.services.lake.names.standardized(topic.name))
    with table.update_schema() as update:
        update.add_column("by_hand", StringType())
    topic.put(message("m2", '{"a":2,"by_hand":"x"}'))
    assert topic.run() is not None
    own = next(name for name in topic.payload_rows()["m2"] if name.startswith("by_hand__"))
    assert topic.payload_rows() == {"m1": {"a": "1"}, "m2": {"a": "2", own: "x"}}
