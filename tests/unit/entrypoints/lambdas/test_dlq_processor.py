"""The DLQ processor's entry: events in, answers out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lean_ops.entrypoints.lambdas import circuit_breaker, dlq_processor
from lean_ops.ledger.books import Alert
from lean_ops.model.circuit import Phase
from lean_ops.model.errors import TransientError, WrongUseError
from lean_ops.operate.circuit_breaker import Watched
from lean_ops.operate.drain_dlq import Drained

NOW = datetime(2026, 2, 3, 12, tzinfo=UTC)


class FakeServices:
    """The product as the entry sees it."""

    def __init__(self) -> None:
        self.settings = SimpleNamespace(project="lean-ops", given=lambda _: "dev")
        self.clock = lambda: NOW
        self.books = self
        self.failed: dict[str, str] = {}
        self.alerts: list[Alert] = []
        self.taken: list[str] = []
        self.drained = Drained(7, {}, NOW)
        self.is_deaf = False
        self.time_left: list[bool] = []
        self.watched = Watched()

    def dead_letters(self) -> Any:
        def take(letters: Any) -> dict[str, str]:
            self.taken += [letter.message_id for letter in letters]
            return self.failed

        return SimpleNamespace(take=take)

    def drain_dlq(self, has_time: Callable[[], bool]) -> Drained:
        self.time_left.append(has_time())
        return self.drained

    def raise_alert(self, alert: Alert, _: datetime, repeated: bool) -> None:
        assert repeated
        if self.is_deaf:
            raise TransientError("the lake is away")
        self.alerts.append(alert)

    def watch_circuits(self) -> Watched:
        return self.watched


class Context:
    def __init__(self, milliseconds: int = 60_000) -> None:
        self.milliseconds = milliseconds

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> FakeServices:
    services = FakeServices()
    for module in (dlq_processor, circuit_breaker):
        monkeypatch.setattr(module, "_services", lambda: services)
    return services


def record(message_id: str, age_minutes: float = 0) -> dict[str, Any]:
    sent = NOW - timedelta(minutes=age_minutes)
    return {"messageId": message_id, "body": "junk", "attributes": {"SentTimestamp": str(int(sent.timestamp() * 1000))}}


def test_exactly_the_letters_that_failed_are_returned(services: FakeServices) -> None:
    services.failed = {"d-2": "away"}
    answer = dlq_processor.handler({"Records": [record("d-1"), record("d-2"), record("d-3")]}, Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "d-2"}]}
    assert services.taken == ["d-1", "d-2", "d-3"]


def test_an_event_without_records_is_answered(services: FakeServices) -> None:
    assert dlq_processor.handler({"Records": []}, Context()) == {"batchItemFailures": []}
    assert services.alerts == []


def test_an_old_letter_is_told(services: FakeServices) -> None:
    dlq_processor.handler({"Records": [record("d-1", 20), record("d-2", 3)]}, Context())
    assert [alert.value for alert in services.alerts] == [20.0]


def test_an_alert_that_can_not_be_written_brings_no_letter_back(services: FakeServices) -> None:
    services.is_deaf = True
    assert dlq_processor.handler({"Records": [record("d-1", 20)]}, Context()) == {"batchItemFailures": []}


@pytest.mark.parametrize(("milliseconds", "has_time"), [(60_000, True), (30_000, False)])
def test_the_queue_is_drained_while_there_is_time(services: FakeServices, milliseconds: int, has_time: bool) -> None:
    answer = dlq_processor.handler({"drain": True}, Context(milliseconds))
    assert answer == {"taken": 7, "failed": 0, "oldest": "2026-02-03T12:00:00+00:00"}
    assert services.time_left == [has_time]


@pytest.mark.parametrize("event", [{}, {"drain": "yes"}, {"records": []}, {"source": "aws.events"}])
def test_any_other_event_is_wrong_use(services: FakeServices, event: dict[str, Any]) -> None:
    with pytest.raises(WrongUseError, match="dlq-processor"):
        dlq_processor.handler(event, Context())
    assert services.taken == []


# the breaker's


def test_the_breaker_says_which_circuits_have_turned(services: FakeServices) -> None:
    services.watched = Watched({"events": Phase.OPEN})
    assert circuit_breaker.handler({}, Context()) == {"events": "OPEN"}


def test_the_breaker_fails_if_a_topic_could_not_be_looked_after(services: FakeServices) -> None:
    services.watched = Watched({"events": Phase.OPEN}, {"orders": "not allowed"})
    with pytest.raises(TransientError, match="orders"):
        circuit_breaker.handler({}, Context())
