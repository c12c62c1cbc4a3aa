from __future__ import annotations

from lean_ops.bridge.ports import FoundSubscription
from lean_ops.bridge.subscriptions import Route, routes_of


def found(name: str, topic: str, pushes: bool = False) -> FoundSubscription:
    return FoundSubscription(f"projects/p/subscriptions/{name}", f"projects/p/topics/{topic}", pushes)


def test_the_topic_is_the_subscription_s_and_not_its_name() -> None:
    routes = routes_of([found("bridge-1", "Meter-Readings"), found("events", "orders")], {})
    assert routes.routes == {
        "meter_readings": Route("meter_readings", "projects/p/subscriptions/bridge-1"),
        "orders": Route("orders", "projects/p/subscriptions/events"),
    }
    assert routes.refused == {}


def test_what_can_not_be_a_topic_or_be_pulled_is_refused_with_the_reason() -> None:
    deleted = FoundSubscription("projects/p/subscriptions/left", "_deleted-topic_")
    routes = routes_of([deleted, found("a", "dlq"), found("b", "events", pushes=True)], {})
    assert routes.routes == {}
    reasons = {path.rpartition("/")[2]: reason for path, reason in routes.refused.items()}
    assert "not a topic name" in reasons["left"]
    assert "reserved" in reasons["a"]
    assert "pushes" in reasons["b"]


def test_two_subscriptions_for_one_topic_are_refused_and_one_that_runs_goes_on() -> None:
    two = [found("a", "events"), found("b", "Events"), found("c", "orders")]
    assert routes_of(two, {}).routes.keys() == {"orders"}
    assert len(routes_of(two, {}).refused) == 2
    running = {"events": Route("events", "projects/p/subscriptions/b")}
    routes = routes_of(two, running)
    assert routes.routes["events"] == running["events"]
    assert set(routes.refused) == {"projects/p/subscriptions/a"}
    other = {"events": Route("events", "projects/p/subscriptions/gone")}
    assert "events" not in routes_of(two, other).routes
