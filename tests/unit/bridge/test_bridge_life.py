"""How long a bridge keeps what it has, how it ends, and which subscriptions it is there for."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.unit.bridge.doubles import Scene, message, path_of, play, until

from lean_ops.aws.topic_queues import Verdict
from lean_ops.bridge.ports import FoundSubscription, Outstanding
from lean_ops.model.errors import TransientError

# leases, the end


def test_the_leases_of_messages_that_wait_are_kept_wherever_they_wait() -> None:
    async def story(scene: Scene) -> None:
        release = threading.Event()
        scene.queues.before = lambda _: release.wait(100) and None
        scene.source.publish("events", *map(message, range(25)))
        for rounds in (1, 2, 3):
            await until(lambda: len(scene.source.leases) >= rounds)  # noqa: B023  asked before the next round
        assert all(len(ids) == 25 for ids, _ in scene.source.leases)
        release.set()
        await until(lambda: len(scene.source.acked) == 25)

    scene = play(story, "events", ack_deadline_seconds=1, topic_messages=10)
    assert {seconds for _, seconds in scene.source.leases} == {1}
    assert len(scene.source.handed_out[path_of("events")]) == 25


def test_told_to_end_it_sends_what_it_has_and_gives_back_what_it_has_not_let_in() -> None:
    async def story(scene: Scene) -> None:
        release = threading.Event()
        scene.queues.before = lambda _: release.wait(100) and None
        scene.source.publish("events", *map(message, range(200)))
        await until(lambda: scene.count("received_total", "events") == 200)
        scene.stop.set()
        await until(lambda: scene.source.streams[path_of("events")].is_closed)
        assert not scene.pulse.is_ready
        release.set()
        assert await scene.run

    scene = play(story, "events", max_messages=50, topic_messages=50)
    assert len(scene.source.acked) == 50
    assert sorted(scene.source.acked) == sorted(scene.queues.taken["events"])
    back = [number for ids, seconds in scene.source.leases for number in ids if seconds == 0]
    assert len(back) == 150
    assert set(back).isdisjoint(scene.source.acked)


def test_what_a_hanging_queue_has_not_confirmed_in_time_is_given_back() -> None:
    async def story(scene: Scene) -> None:
        release = threading.Event()
        scene.queues.before = lambda _: release.wait(100) and None
        scene.source.publish("events", *map(message, range(30)))
        await until(lambda: scene.count("received_total", "events") == 30)
        scene.stop.set()
        assert await scene.run
        release.set()

    scene = play(story, "events", shutdown_seconds=0.2)
    assert scene.source.acked == []
    assert sorted(int(number) for ids, seconds in scene.source.leases for number in ids if seconds == 0) == list(
        range(30)
    )
    assert scene.told("stopped")[0]["given_back"] == 30


def test_what_can_not_be_given_back_in_time_shows_in_the_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lean_ops.bridge.bridge._GIVE_BACK_SECONDS", 0.1)

    async def story(scene: Scene) -> None:
        release = threading.Event()
        scene.queues.before = lambda _: release.wait(100) and None
        scene.source.publish("events", message(1))
        await until(lambda: scene.queues.lookups and scene.count("in_flight", "events") == 1)

        async def hang(*_: object) -> None:
            await asyncio.sleep(1000)

        monkeypatch.setattr(scene.source, "lease", hang)
        scene.stop.set()
        assert not await scene.run
        release.set()

    play(story, "events", shutdown_seconds=0.2)


def test_acknowledgements_that_fail_are_counted_and_told() -> None:
    async def story(scene: Scene) -> None:
        scene.source.faults["acknowledge"] = TransientError("Pub/Sub can't be reached")
        scene.source.publish("events", message(1))
        await until(lambda: scene.count("unsettled_total", "events") == 1)

    scene = play(story, "events")
    assert scene.queues.taken["events"] == ["1"]
    assert scene.count("acked_total", "events") == 0
    assert scene.told("not_settled")[0]["what"] == "acknowledge"


def test_a_fault_of_its_own_ends_it_loudly_with_everything_given_back() -> None:
    async def story(scene: Scene) -> None:
        scene.queues.judge = lambda *_: Verdict(taken=True)
        real_send = scene.queues.send
        scene.queues.send = lambda *given: real_send(*given)[1:]  # type: ignore[method-assign]
        scene.source.publish("events", message(1))
        with pytest.raises(ValueError, match="zip"):
            await scene.run

    scene = play(story, "events")
    assert scene.source.acked == []
    assert scene.source.leases == [(("1",), 0)]
    assert scene.told("broken")


def test_an_unforeseen_fault_of_an_acknowledgement_ends_it_loudly_too() -> None:
    async def story(scene: Scene) -> None:
        scene.source.faults["acknowledge"] = KeyError("unforeseen")  # type: ignore[assignment]
        scene.source.publish("events", message(1))
        with pytest.raises(KeyError, match="unforeseen"):
            await scene.run

    assert play(story, "events").told("broken")


def test_a_call_that_fails_in_an_unforeseen_way_is_told_and_its_messages_go_back() -> None:
    async def story(scene: Scene) -> None:
        failing = True

        def before(_: str) -> None:
            if failing:
                raise KeyError("unforeseen")

        scene.queues.before = before
        scene.source.publish("events", message(1))
        await until(lambda: scene.told("delivery_failed") and scene.source.leases)
        failing = False
        await until(lambda: scene.source.acked == ["1"])

    assert "KeyError" in play(story, "events").told("resting")[0]["error"]


# which subscriptions


def test_new_subscriptions_are_found_and_gone_ones_left() -> None:
    async def story(scene: Scene) -> None:
        await until(lambda: len(scene.source.opened) == 1)
        scene.source.found.append(FoundSubscription(path_of("meters"), "projects/p/topics/meters"))
        scene.source.publish("meters", message(1))
        await until(lambda: scene.source.acked == ["1"])
        del scene.source.found[0]
        await until(lambda: scene.told("subscription_gone"))
        assert scene.source.streams[path_of("events")].is_closed

    scene = play(story, "events", refresh_seconds=0.05)
    assert scene.told("subscription_gone")[0]["topic"] == "events"
    assert scene.metrics.registry.get_sample_value("lean_ops_bridge_topic_up", {"topic": "events"}) is None


def test_subscriptions_that_can_not_be_listed_at_first_are_looked_for_again() -> None:
    async def story(scene: Scene) -> None:
        scene.source.publish("events", message(1))
        await until(lambda: scene.source.acked == ["1"])

    scene = Scene("events")
    scene.source.faults["list"] = TransientError("Pub/Sub can't be reached")

    async def played() -> None:
        await scene.start()
        assert not scene.pulse.is_ready
        await story(scene)
        assert scene.pulse.is_ready
        assert await scene.end()

    asyncio.run(played())
    assert scene.told("subscriptions_not_listed")


def test_finding_no_subscription_at_all_is_told() -> None:
    async def story(scene: Scene) -> None:
        await until(lambda: scene.told("no_subscription_found"))

    assert play(story).source.opened == []


def test_refused_subscriptions_are_told_once_and_counted() -> None:
    async def story(scene: Scene) -> None:
        scene.source.found.append(FoundSubscription("projects/p/subscriptions/x", "_deleted-topic_"))
        await until(lambda: scene.metrics.registry.get_sample_value("lean_ops_bridge_refused_subscriptions") == 1)
        await asyncio.sleep(0.1)

    scene = play(story, "events", refresh_seconds=0.01)
    assert len(scene.told("subscription_refused")) == 1


def test_pub_sub_is_asked_for_a_share_of_what_can_be_held() -> None:
    async def story(scene: Scene) -> None:
        await until(lambda: len(scene.source.opened) == 40)

    topics = [f"t{number}" for number in range(40)]
    scene = play(story, *topics, max_messages=80_000, max_bytes=80 * 1024 * 1024, topic_messages=5000)
    assert {outstanding for _, outstanding in scene.source.opened} == {Outstanding(2000, 2 * 1024 * 1024)}
    scene = play(story, *topics, max_messages=100, max_bytes=2 * 1024 * 1024, topic_messages=5000)
    assert {outstanding for _, outstanding in scene.source.opened} == {Outstanding(1000, 1024 * 1024)}
