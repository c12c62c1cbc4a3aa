"""When something is a trouble, and in which words it is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lean_ops.ledger.account import Finding, FindingKind, ZoneAccount
from lean_ops.ledger.drift_news import DriftNews
from lean_ops.ledger.standing import OpenAlert, Trouble
from lean_ops.model.batch import Counts, Zone
from lean_ops.model.registry import RegistryItem, Status
from lean_ops.operate.watch import Unread, books_trouble, waiting_trouble

NOW = datetime(2026, 2, 3, 10, tzinfo=UTC)
ITEM = RegistryItem("events", Status.READY)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("waited", "gate_open", "is_trouble"),
    [
        (HOUR, None, True),
        (HOUR - timedelta(seconds=1), None, False),
        (5 * HOUR, HOUR, True),
        (5 * HOUR, HOUR - timedelta(seconds=1), False),
        (timedelta(minutes=5), 5 * HOUR, False),
    ],
)
def test_the_hour_begins_when_data_and_an_open_gate_are_both_there(
    waited: timedelta, gate_open: timedelta | None, is_trouble: bool
) -> None:
    item = ITEM if gate_open is None else replace(ITEM, updated_at=(NOW - gate_open).isoformat())
    found = waiting_trouble(item, Zone.CURATED, Unread(7, NOW - waited), NOW)
    assert (found is not None) is is_trouble


def test_a_time_without_a_zone_is_utc() -> None:
    item = replace(ITEM, updated_at="2026-02-03T09:30:00")
    assert waiting_trouble(item, Zone.STANDARDIZED, Unread(7, NOW - 9 * HOUR), NOW) is None


def test_who_waits_is_told_how_much_how_long_and_where_to_look() -> None:
    found = waiting_trouble(ITEM, Zone.STANDARDIZED, Unread(7, NOW - 2 * HOUR), NOW)
    assert found is not None
    assert (found.topic, found.place, found.severity, found.value, found.threshold) == (
        "events",
        "standardized",
        "warning",
        120,
        60,
    )
    assert "7 records wait for standardized" in found.message
    assert "since 2026-02-03T08:00:00Z" in found.message
    assert "`lean-ops history events`" in found.message


@pytest.mark.parametrize(("records", "severity"), [(1, "warning"), (2, "critical")])
def test_books_that_are_far_off_are_critical(records: int, severity: str) -> None:
    findings = tuple(Finding(FindingKind.ROWS, "too few", 1, records) for _ in range(3))
    zone = ZoneAccount("events", Zone.CURATED, Counts(100, inserted=100), 99, findings=findings)
    found = books_trouble(zone)
    assert (found.place, found.severity, found.value) == ("curated", severity, records / 100)
    assert found.message.startswith("curated: too few (and 2 more findings); `lean-ops reconcile events`")


def test_an_alert_that_lasts_is_known_by_its_place_whatever_that_is_called() -> None:
    alert = Trouble("a_topic", "zone-with-dashes", "warning", "words").alert("A_KIND", NOW)
    standing = OpenAlert(alert.alert_id, "a_topic", "A_KIND", "words", NOW)
    assert standing.place == "zone-with-dashes"
    over = standing.over(NOW + timedelta(minutes=30))
    assert (over.alert_id, over.severity, over.message) == (alert.alert_id, "info", "over after 30 minutes: words")


def test_drift_names_the_first_columns_and_how_many_more() -> None:
    alert = DriftNews("events", "b2", 7, ("COLLISION", "NEW_COLUMN"), ("a", "b")).alert()
    assert alert.alert_id == "DRIFT-events-b2"
    assert alert.message.startswith("its payloads changed: COLLISION, NEW_COLUMN: a, b and 5 more;")
    assert not alert.lasts
