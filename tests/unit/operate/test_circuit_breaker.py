"""What the circuit breaker does about its decisions, with a table in memory and mappings that answer as told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.contract.memory_circuits import MemoryCircuits

from lean_ops.aws.mappings import QueueMapping
from lean_ops.ledger.books import Alert
from lean_ops.model.circuit import Circuit, Phase
from lean_ops.model.errors import TerminalError, TransientError
from lean_ops.operate.circuit_breaker import CircuitBreaker

START = datetime(2026, 2, 3, 10, 15, 20, tzinfo=UTC)
BAD = (30, 20)
GOOD = (30, 3)


@dataclass
class FakeMappings:
    """Mappings whose changes are done when the next minute begins, as on AWS."""

    found: dict[str, QueueMapping]
    switched: list[tuple[str, bool, int | None]] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)

    def switch(self, mapping: QueueMapping, *, on: bool, concurrency: int | None) -> None:
        if error := self.errors.get(mapping.mapping_id):
            raise error
        self.switched.append((mapping.mapping_id, on, concurrency))
        state = "Enabling" if on else "Disabling"
        limit = mapping.concurrency if mapping.is_provisioned else concurrency
        self.found[mapping.mapping_id] = replace(mapping, state=state, concurrency=limit)

    def settle(self) -> None:
        done = {"Enabling": "Enabled", "Disabling": "Disabled"}
        self.found = {name: replace(each, state=done.get(each.state, each.state)) for name, each in self.found.items()}


class Scene:
    """Topics, their traffic, and breakers that look at them minute by minute."""

    def __init__(self, *topics: str, **mapping: object) -> None:
        self.now = START
        self.circuits = MemoryCircuits()
        self.mappings = FakeMappings(
            {topic: replace(QueueMapping(topic, f"arn:{topic}", "Enabled"), **mapping) for topic in topics}  # type: ignore[arg-type]
        )
        self.told: list[Alert] = []
        self.deaf = False

    def breaker(self) -> CircuitBreaker:
        return CircuitBreaker(self.circuits, self.mappings, self._tell, lambda: self.now)

    def _tell(self, alert: Alert) -> None:
        if self.deaf:
            raise TransientError("the lake is away")
        self.told.append(alert)

    def minute(self, topic: str = "events", counts: tuple[int, int] = (0, 0)) -> Phase:
        """A minute passes with this traffic, then the breaker looks."""
        self.now += timedelta(minutes=1)
        self.mappings.settle()
        self.circuits.record(topic, int(self.now.timestamp()) // 60, *counts)
        self.breaker().watch(self.mappings.found)
        return self.circuit(topic).phase

    def minutes(self, count: int) -> None:
        for _ in range(count):
            self.minute()

    def circuit(self, topic: str = "events") -> Circuit:
        return self.circuits.seen(topic, 0).circuit

    @property
    def kinds(self) -> list[str]:
        return [alert.kind for alert in self.told]


def test_a_topic_that_goes_well_is_never_touched() -> None:
    scene = Scene("events")
    for _ in range(10):
        assert scene.minute(counts=GOOD) is Phase.CLOSED
    assert scene.mappings.switched == []
    assert scene.circuit().revision == 0
    assert scene.told == []


def test_an_outage_from_beginning_to_end() -> None:
    scene = Scene("events", concurrency=50)
    assert scene.minute(counts=BAD) is Phase.OPEN
    assert scene.mappings.switched == [("events", False, 50)]
    scene.minutes(4)
    assert scene.circuit().phase is Phase.OPEN
    assert scene.minute() is Phase.HALF_OPEN
    assert scene.mappings.switched[1:] == [("events", True, 2)]
    assert scene.minute() is Phase.HALF_OPEN
    assert scene.minute(counts=GOOD) is Phase.CLOSED
    assert scene.mappings.switched[2:] == [("events", True, 50)]
    scene.minutes(3)
    assert len(scene.mappings.switched) == 3
    assert (scene.circuit().settled, scene.circuit().announced) == (True, True)
    assert scene.mappings.found["events"] == QueueMapping("events", "arn:events", "Enabled", 50)
    assert scene.kinds == ["CIRCUIT_OPEN", "CIRCUIT_CLOSED"]


def test_the_alerts_say_what_happened_and_go_by_the_outage() -> None:
    scene = Scene("events")
    scene.minute(counts=BAD)
    began = int(scene.now.timestamp())
    scene.minutes(6)
    scene.minute(counts=GOOD)
    opened, closed = scene.told
    assert opened.alert_id == f"CIRCUIT_OPEN-events-{began}"
    assert (opened.severity, opened.value, opened.threshold) == ("critical", pytest.approx(2 / 3), 0.5)
    assert "20 of 30 messages failed" in opened.message
    assert closed.alert_id == f"CIRCUIT_CLOSED-events-{began}"
    assert (closed.severity, "3 of 30 messages failed" in closed.message) == ("info", True)


def test_a_failed_trial_opens_the_circuit_again_and_tells_nobody_twice() -> None:
    scene = Scene("events")
    scene.minute(counts=BAD)
    scene.minutes(5)
    assert scene.minute(counts=BAD) is Phase.OPEN
    scene.minutes(1)
    assert scene.mappings.found["events"].state == "Disabled"
    scene.minutes(4)
    assert scene.circuit().phase is Phase.HALF_OPEN
    scene.minute(counts=GOOD)
    assert scene.kinds == ["CIRCUIT_OPEN", "CIRCUIT_CLOSED"]
    scene.minutes(1)
    assert scene.mappings.found["events"].concurrency is None


def test_a_trial_without_traffic_goes_on() -> None:
    scene = Scene("events")
    scene.minute(counts=BAD)
    scene.minutes(90)
    assert scene.circuit().phase is Phase.HALF_OPEN
    assert scene.mappings.found["events"] == QueueMapping("events", "arn:events", "Enabled", 2)


def test_a_slow_topic_is_judged_by_all_of_its_trial() -> None:
    scene = Scene("events")
    scene.minute(counts=BAD)
    scene.minutes(5)
    phases = [scene.minute(counts=(1, 0)) for _ in range(10)]
    assert phases == [Phase.HALF_OPEN] * 9 + [Phase.CLOSED]


def test_other_topics_are_left_alone() -> None:
    scene = Scene("events", "others")
    for _ in range(8):
        scene.circuits.record("others", int(scene.now.timestamp()) // 60 + 1, *GOOD)
        scene.minute(counts=BAD)
    assert {topic for topic, _, _ in scene.mappings.switched} == {"events"}
    assert scene.circuit("others").revision == 0


def test_a_mapping_that_is_changing_is_waited_for() -> None:
    scene = Scene("events", state="Updating")
    scene.minute(counts=BAD)
    scene.minutes(2)
    assert scene.mappings.switched == []
    assert not scene.circuit().settled
    scene.mappings.found["events"] = QueueMapping("events", "arn:events", "Enabled")
    scene.minute()
    assert scene.mappings.switched == [("events", False, None)]


def test_a_change_that_is_refused_for_now_is_made_a_minute_later() -> None:
    scene = Scene("events")
    scene.mappings.errors["events"] = TransientError("another change is under way")
    scene.minute(counts=BAD)
    assert (scene.circuit().settled, scene.mappings.switched) == (False, [])
    scene.mappings.errors.clear()
    scene.minutes(2)
    assert scene.mappings.switched == [("events", False, None)]
    assert scene.circuit().settled


def test_five_minutes_are_not_over_before_the_queue_is_off() -> None:
    scene = Scene("events")
    scene.mappings.errors["events"] = TransientError("throttled")
    scene.minute(counts=BAD)
    scene.minutes(10)
    assert scene.circuit().phase is Phase.OPEN


def test_provisioned_pollers_keep_their_own_limits() -> None:
    scene = Scene("events", is_provisioned=True)
    scene.minute(counts=BAD)
    scene.minutes(6)
    scene.minute(counts=GOOD)
    scene.minutes(1)
    assert [concurrency for _, _, concurrency in scene.mappings.switched] == [None] * 2
    assert (scene.circuit().phase, scene.circuit().settled) == (Phase.CLOSED, True)


def test_a_queue_that_a_person_has_turned_off_stays_off() -> None:
    scene = Scene("events", state="Disabled")
    scene.minute(counts=BAD)
    scene.minutes(8)
    assert scene.mappings.switched == []
    assert scene.circuit().revision == 0


def test_what_a_person_does_to_a_settled_mapping_stays() -> None:
    scene = Scene("events")
    scene.minute(counts=BAD)
    scene.minutes(2)
    scene.mappings.found["events"] = replace(scene.mappings.found["events"], state="Enabled")
    scene.minutes(2)
    assert len(scene.mappings.switched) == 1


def test_the_own_limit_outlives_an_outage_that_begins_before_it_is_restored() -> None:
    scene = Scene("events", concurrency=50)
    scene.minute(counts=BAD)
    scene.minutes(6)
    scene.mappings.errors["events"] = TransientError("throttled")
    assert scene.minute(counts=GOOD) is Phase.CLOSED
    assert scene.minute(counts=(200, 200)) is Phase.OPEN
    scene.mappings.errors.clear()
    scene.minutes(7)
    scene.minute(counts=GOOD)
    scene.minutes(1)
    assert scene.mappings.found["events"].concurrency == 50


def test_what_goes_wrong_with_one_topic_is_told_and_keeps_no_other_waiting() -> None:
    scene = Scene("events", "others")
    scene.mappings.errors["events"] = TerminalError("not allowed")
    now = int(START.timestamp()) // 60
    for topic in ("events", "others"):
        scene.circuits.record(topic, now, *BAD)
    watched = scene.breaker().watch(scene.mappings.found)
    assert watched.failed == {"events": "not allowed"}
    assert watched.turned == {"others": Phase.OPEN}
    assert scene.kinds == ["CIRCUIT_OPEN"] * 2


def test_an_alert_that_could_not_be_raised_is_raised_later_and_the_queue_is_off_at_once() -> None:
    scene = Scene("events")
    scene.deaf = True
    scene.minute(counts=BAD)
    assert scene.mappings.switched == [("events", False, None)]
    scene.deaf = False
    scene.minutes(3)
    assert scene.kinds == ["CIRCUIT_OPEN"]


def test_two_breakers_at_once_do_one_thing() -> None:
    scene = Scene("events")
    scene.circuits.record("events", int(START.timestamp()) // 60, *BAD)
    late = Reading(scene.circuits)
    breakers = [CircuitBreaker(late, scene.mappings, scene._tell, lambda: START) for _ in range(2)]
    late.others_turn = lambda: breakers[1].watch(scene.mappings.found)
    first = breakers[0].watch(scene.mappings.found)
    assert first.turned == {}
    assert scene.mappings.switched == [("events", False, None)]
    assert scene.kinds == ["CIRCUIT_OPEN"]


class Reading(MemoryCircuits):
    """A table that lets another breaker do all of its work between the first one's look and its decision."""

    def __init__(self, table: MemoryCircuits) -> None:
        self.__dict__.update(table.__dict__)
        self.others_turn: object = None

    def save(self, circuit: Circuit) -> Circuit | None:
        turn, self.others_turn = self.others_turn, None
        if callable(turn):
            turn()
        return super().save(circuit)


def test_a_breaker_that_dies_after_its_decision_is_finished_by_the_next() -> None:
    scene = Scene("events")
    scene.circuits.record("events", int(START.timestamp()) // 60, *BAD)
    scene.circuits.save(
        Circuit("events", Phase.OPEN, int(START.timestamp()), int(START.timestamp()), settled=False, announced=False)
    )
    scene.breaker().watch(scene.mappings.found)
    assert scene.mappings.switched == [("events", False, None)]
    assert scene.kinds == ["CIRCUIT_OPEN"]
