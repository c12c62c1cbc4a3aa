from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from lean_ops.ledger.books import Alert, Attempt, Books, Entry, RunStatus, error_rate_alert, history_row
from lean_ops.model.batch import Batch, Counts, Intent, Zone, pipeline_id
from lean_ops.model.errors import TransientError
from lean_ops.model.ledger import ledger_row
from lean_ops.model.tables import OPS_TABLES, ColumnType, Names, TableName

NOW = datetime(2026, 2, 3, 10, tzinfo=UTC)
BATCH = Batch("events", Zone.STANDARDIZED, 1, 2, "1.0.0")
COUNTS = Counts(records_in=10, inserted=5, updated=1, duplicates=2, superseded=1, errors=1)
ATTEMPT = Attempt("run", "events", Zone.STANDARDIZED, "b1", NOW)
ALERT = Alert("key", "events", "ERROR_RATE", "warning", "1 of 10 records", 0.1, 0.05)
PYTHON_TYPES = {
    ColumnType.STRING: str,
    ColumnType.BIGINT: int,
    ColumnType.DOUBLE: float,
    ColumnType.BOOLEAN: bool,
    ColumnType.TIMESTAMP: datetime,
}


def whole_ledger_row(counts: Counts = COUNTS) -> dict[str, Any]:
    return ledger_row("events", Zone.CURATED, "b1", (1, 2), counts, NOW)


ROWS = {
    "reconciliation_log": whole_ledger_row(),
    "job_run_history": history_row(ATTEMPT, RunStatus.FAILED, "it fell over", COUNTS, NOW + timedelta(seconds=2)),
    "alerts": {**ALERT.row(NOW), "closed_at": NOW},
}


@pytest.mark.parametrize("table", ROWS)
def test_a_row_has_exactly_its_tables_columns_with_values_of_their_types(table: str) -> None:
    row, columns = ROWS[table], OPS_TABLES[table].columns
    assert list(row) == [column.name for column in columns]
    for column in columns:
        assert type(row[column.name]) is PYTHON_TYPES[column.type], column


def test_the_ledger_says_what_became_of_a_batch() -> None:
    row = whole_ledger_row()
    assert (row["zone"], row["kind"], row["from_snapshot"], row["to_snapshot"]) == ("curated", "BATCH", "1", "2")
    assert (row["records_out"], row["variance"], row["balanced"], row["recorded_at"]) == (6, 0.0, True, NOW)


def test_a_first_batch_has_no_start_in_the_ledger() -> None:
    row = ledger_row("events", Zone.STANDARDIZED, "b1", (None, 2), COUNTS, NOW)
    assert row["from_snapshot"] is None
    assert list(row) == [column.name for column in OPS_TABLES["reconciliation_log"].columns]


def test_an_attempt_that_came_to_nothing_has_no_counts_in_the_history() -> None:
    row = history_row(ATTEMPT, RunStatus.SKIPPED, "the lease is held", None, NOW + timedelta(milliseconds=1500))
    assert [row[name] for name in ("records_in", "records_out", "error_rate")] == [None] * 3
    assert (row["status"], row["duration_ms"], row["started_at"]) == ("SKIPPED", 1500, NOW)
    assert list(row) == [column.name for column in OPS_TABLES["job_run_history"].columns]


# counts

numbers = st.integers(0, 10**12)
any_counts = st.builds(Counts, *(numbers for _ in fields(Counts)))


@given(any_counts)
def test_books_balance_exactly_when_every_record_has_one_fate(counts: Counts) -> None:
    fates = counts.inserted + counts.updated + counts.duplicates + counts.superseded + counts.errors
    assert counts.balanced == (counts.records_in == fates)
    assert counts.records_out + counts.duplicates + counts.superseded + counts.errors == fates
    assert counts.difference == counts.records_in - fates
    row = whole_ledger_row(counts)
    assert row["balanced"] == (row["variance"] == 0)


@given(st.tuples(numbers, numbers, numbers, numbers, numbers))
def test_counts_whose_fates_make_up_what_came_in_balance(fates: tuple[int, ...]) -> None:
    counts = Counts(sum(fates), *fates)
    assert counts.balanced
    assert counts.variance == 0
    assert not Counts(sum(fates) + 1, *fates).balanced


@given(any_counts)
def test_variance_is_the_share_of_records_without_or_with_too_many_fates(counts: Counts) -> None:
    assert counts.variance >= 0
    assert (counts.variance == 0) == counts.balanced
    if counts.records_in:
        assert counts.variance == abs(counts.difference) / counts.records_in


def test_fates_of_records_that_never_came_in_are_a_full_variance() -> None:
    assert Counts(records_in=0, inserted=7).variance == 1
    assert Counts().variance == Counts().error_rate == 0


# alerts


@pytest.mark.parametrize(
    ("records_in", "errors", "severity"),
    [
        (100, 0, None),
        (100, 5, None),
        (20, 1, None),
        (1000, 51, "warning"),
        (100, 10, "warning"),
        (10, 1, "warning"),
        (1000, 101, "critical"),
        (1, 1, "critical"),
        (0, 0, None),
    ],
)
def test_more_than_five_percent_errors_warn_and_more_than_ten_are_critical(
    records_in: int, errors: int, severity: str | None
) -> None:
    alert = error_rate_alert(BATCH, Counts(records_in=records_in, inserted=records_in - errors, errors=errors))
    assert (alert.severity if alert else None) == severity


@given(st.integers(1, 10**9))
def test_exactly_five_and_ten_percent_are_not_above_themselves(times: int) -> None:
    five = error_rate_alert(BATCH, Counts(records_in=20 * times, errors=times))
    ten = error_rate_alert(BATCH, Counts(records_in=10 * times, errors=times))
    above = error_rate_alert(BATCH, Counts(records_in=10 * times, errors=times + 1))
    assert five is None
    assert ten is not None
    assert (ten.severity, ten.threshold, ten.value) == ("warning", 0.05, 0.1)
    assert above is not None
    assert (above.severity, above.threshold) == ("critical", 0.1)


def test_the_same_alert_of_the_same_batch_has_the_same_id_and_others_have_others() -> None:
    counts = Counts(records_in=10, inserted=9, errors=1)
    first, again = error_rate_alert(BATCH, counts), error_rate_alert(BATCH, counts)
    other = error_rate_alert(Batch("events", Zone.STANDARDIZED, 2, 3, "1.0.0"), counts)
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.alert_id == again.alert_id != other.alert_id
    assert first.message == "1 of 10 records of a standardized batch were refused"


# writing


class FakeTables:
    """Shared tables in memory."""

    def __init__(self) -> None:
        self.rows: list[tuple[TableName, dict[str, Any]]] = []
        self.counted = 0

    def append_rows(self, name: TableName, rows: list[dict[str, Any]]) -> None:
        self.append_rows_of({name: rows})

    def append_rows_of(self, tables: dict[TableName, list[dict[str, Any]]]) -> None:
        self.rows += [(name, row) for name, rows in tables.items() for row in rows]

    def count(self, name: TableName, **equal: str) -> int:
        self.counted += 1
        return sum(table == name and equal.items() <= row.items() for table, row in self.rows)


@pytest.fixture
def tables() -> FakeTables:
    return FakeTables()


@pytest.fixture
def books(tables: FakeTables) -> Books:
    shared: Any = tables
    return Books(shared, Names("dev_"))


LEDGER = TableName("dev_ops_db", "reconciliation_log")
KEY = ("topic_name", "batch_id")


def entry(row: dict[str, Any]) -> Entry:
    return Entry("reconciliation_log", row, KEY)


def test_a_row_of_new_work_is_appended_without_looking(books: Books, tables: FakeTables) -> None:
    row = whole_ledger_row()
    books.append_once([entry(row)], repeated=False)
    assert tables.rows == [(LEDGER, row)]
    assert tables.counted == 0


def test_a_row_that_an_earlier_try_left_is_not_repeated(books: Books, tables: FakeTables) -> None:
    row = whole_ledger_row()
    for _ in range(3):
        books.append_once([entry(row)], repeated=True)
    assert tables.rows == [(LEDGER, row)]


def test_of_several_rows_only_those_are_appended_that_an_earlier_try_did_not_leave(
    books: Books, tables: FakeTables
) -> None:
    left, lacking = whole_ledger_row(), ROWS["job_run_history"]
    books.append_once([entry(left)], repeated=False)
    books.append_once([entry(left), Entry("job_run_history", lacking, (*KEY, "status"))], repeated=True)
    assert tables.rows == [(LEDGER, left), (TableName("dev_ops_db", "job_run_history"), lacking)]


@pytest.mark.parametrize("column", KEY)
def test_rows_that_differ_in_one_key_column_are_different_rows(books: Books, tables: FakeTables, column: str) -> None:
    row = whole_ledger_row()
    books.append_once([entry(row)], repeated=True)
    books.append_once([entry({**row, column: "other"})], repeated=True)
    books.append_once([entry({**row, "records_in": 99})], repeated=True)
    assert len(tables.rows) == 2


def test_an_alert_is_logged_and_written_once_per_repeated_work(books: Books, tables: FakeTables) -> None:
    with capture_logs() as logs:
        books.raise_alert(ALERT, NOW)
        books.raise_alert(ALERT, NOW, repeated=True)
    assert tables.rows == [(TableName("dev_ops_db", "alerts"), ALERT.row(NOW))]
    assert [(entry["event"], entry["severity"], entry["topic"]) for entry in logs] == [
        ("alert", "warning", "events")
    ] * 2


def test_an_alert_is_published_once_per_repeated_work(tables: FakeTables) -> None:
    told: list[Alert] = []
    shared: Any = tables
    books = Books(shared, Names(), told.append)
    books.raise_alert(ALERT, NOW)
    books.raise_alert(ALERT, NOW, repeated=True)
    assert told == [ALERT]


def test_news_is_over_as_soon_as_it_is_told() -> None:
    assert (ALERT.row(NOW)["closed_at"], replace(ALERT, lasts=False).row(NOW)["closed_at"]) == (None, NOW)


def test_several_alerts_are_told_one_by_one_and_written_together(tables: FakeTables) -> None:
    told: list[Alert] = []
    shared: Any = tables
    alerts = [ALERT, replace(ALERT, key="other")]
    Books(shared, Names(), told.append).raise_all(alerts, NOW)
    assert told == alerts
    assert [row for _, row in tables.rows] == [alert.row(NOW) for alert in alerts]


def test_what_is_announced_leaves_no_row(tables: FakeTables) -> None:
    told: list[Alert] = []
    shared: Any = tables
    Books(shared, Names(), told.append).announce(ALERT)
    assert (told, tables.rows) == ([ALERT], [])


def test_an_alert_that_can_not_be_published_is_written_all_the_same(tables: FakeTables) -> None:
    def fail(_: Alert) -> None:
        raise TransientError("throttled")

    shared: Any = tables
    with capture_logs() as logs:
        Books(shared, Names(), fail).raise_alert(ALERT, NOW)
    assert len(tables.rows) == 1
    assert [entry["log_level"] for entry in logs] == ["warning", "error"]


# batches

snapshots = st.integers(0, 2**63 - 1)
batches = st.builds(
    Batch, st.text(max_size=5), st.sampled_from(Zone), st.none() | snapshots, snapshots, st.text(max_size=5)
)


@given(
    st.builds(
        Intent,
        batches,
        st.lists(st.text(), max_size=3).map(tuple),
        st.text(),
        st.none() | any_counts,
        st.none() | snapshots,
    )
)
def test_an_intent_survives_being_plain_data(intent: Intent) -> None:
    assert Intent.from_dict(intent.to_dict()) == intent


def test_a_batch_id_depends_on_every_part_of_the_batch_and_on_nothing_else() -> None:
    others = [
        Batch("orders", Zone.STANDARDIZED, 1, 2, "1.0.0"),
        Batch("events", Zone.CURATED, 1, 2, "1.0.0"),
        Batch("events", Zone.STANDARDIZED, None, 2, "1.0.0"),
        Batch("events", Zone.STANDARDIZED, 1, 3, "1.0.0"),
        Batch("events", Zone.STANDARDIZED, 1, 2, "1.0.1"),
    ]
    assert len({BATCH.batch_id, *(other.batch_id for other in others)}) == 6
    assert Batch("events", Zone.STANDARDIZED, 1, 2, "1.0.0").batch_id == BATCH.batch_id


def test_pipelines_are_named_as_the_state_keeps_them() -> None:
    assert BATCH.pipeline_id == pipeline_id(Zone.STANDARDIZED, "events") == "standardization_events"
    assert pipeline_id(Zone.CURATED, "events") == "curated_events"
