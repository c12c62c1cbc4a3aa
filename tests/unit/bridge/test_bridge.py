"""The bridge between a Pub/Sub and queues in memory: what becomes of each message."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.unit.bridge.doubles import FakeSource, Scene, message, path_of, play, until

from lean_ops.aws.topic_queues import MOST_BYTES, Verdict
from lean_ops.bridge.ports import Outstanding
from lean_ops.model.envelope import Refusal
from lean_ops.model.errors import TerminalError, TransientError

BUSY = Verdict(taken=False, reason="InternalError: busy")
POISON = Verdict(taken=False, reason="InvalidMessageContents: no", for_good=True)


def test_every_message_reaches_its_topics_queue_and_is_acknowledged() -> None:
    async def story(scene: Scene) -> None:
        scene.source.publish("events", *map(message, range(95)))
        scene.source.publish("meters", *map(message, range(100, 117)))
        await until(lambda: len(scene.source.acked) == 112)

    scene = play(story, "events", "meters")
    assert sorted(map(int, scene.queues.taken["events"])) == list(range(95))
    assert sorted(map(int, scene.queues.taken["meters"])) == list(range(100, 117))
    assert max(len(ids) for _, ids in scene.queues.batches) == 10
    assert scene.queues.lookups.count("events") == 1
    assert scene.source.unsettled == set()
    assert scene.count("received_total", "events") == 95
    assert scene.count("sent_total", "events") == 95
    assert scene.count("acked_total", "events") == 95
    assert scene.count("delivery_seconds_count", "events") == 95
    assert scene.count("in_flight", "events") == 0
    assert scene.count("topic_up", "events") == 1
    assert scene.count("sent_bytes_total", "events") == scene.count("received_bytes_total", "events") > 95 * 50


def test_nothing_is_acknowledged_that_the_queue_did_not_confirm() -> None:
    async def story(scene: Scene) -> None:
        release = threading.Event()
        scene.queues.before = lambda _: release.wait(100) and None
        scene.source.publish("events", *map(message, range(30)))
        await until(lambda: scene.count("received_total", "events") == 30)
        await asyncio.sleep(0.3)
        assert scene.source.acked == []
        release.set()
        await until(lambda: len(scene.source.acked) == 30)

    play(story, "events")


def test_what_a_busy_queue_refuses_is_sent_again_and_nothing_else() -> None:
    tries: dict[str, int] = {}

    def judge(_: str, message_id: str) -> Verdict | None:
        tries[message_id] = tries.get(message_id, 0) + 1
        return BUSY if int(message_id) % 3 == 0 and tries[message_id] < 3 else None

    async def story(scene: Scene) -> None:
        scene.queues.judge = judge
        scene.source.publish("events", *map(message, range(20)))
        await until(lambda: len(scene.source.acked) == 20)

    scene = play(story, "events")
    assert tries == {str(number): 3 if number % 3 == 0 else 1 for number in range(20)}
    assert scene.source.leases == []
    assert scene.count("refused_total", "events", fault="receiver") == 14


def test_exactly_what_stays_refused_goes_back_and_comes_again() -> None:
    refusing = True

    async def story(scene: Scene) -> None:
        nonlocal refusing
        scene.queues.judge = lambda _, message_id: BUSY if refusing and message_id in {"3", "8"} else None
        scene.source.publish("events", *map(message, range(10)))
        await until(lambda: len(scene.source.acked) == 8 and scene.source.handed_out[path_of("events")].count("8") > 1)
        refusing = False
        await until(lambda: len(scene.source.acked) == 10)

    scene = play(story, "events")
    handed_out = scene.source.handed_out[path_of("events")]
    assert {number for number in handed_out if handed_out.count(number) > 1} == {"3", "8"}
    assert {number for ids, _ in scene.source.leases for number in ids} == {"3", "8"}
    assert len(scene.source.opened) == 1
    assert scene.count("nacked_total", "events") >= 2


def test_what_the_queue_never_takes_is_not_tried_twice_before_it_goes_back() -> None:
    async def story(scene: Scene) -> None:
        scene.queues.judge = lambda _, message_id: POISON if message_id == "1" else None
        scene.source.publish("events", message(0), message(1))
        await until(lambda: len(scene.source.leases) == 3)

    scene = play(story, "events", rest_seconds=60, rest_seconds_max=600)
    assert scene.source.acked == ["0"]
    # Each time it waits longer.
    assert [seconds for _, seconds in scene.source.leases] == [45, 90, 180]
    assert [ids for _, ids in scene.queues.batches if ids != ["0", "1"]] == [["1"], ["1"]]
    assert scene.count("refused_total", "events", fault="sender") == 3
    line = scene.told("refused")[0]
    assert (line["messages"], line["message_ids"], line["senders_fault"]) == (1, ["1"], 1)
    assert line["reasons"] == [POISON.reason]


def test_a_throttled_call_is_made_again() -> None:
    async def story(scene: Scene) -> None:
        scene.queues.faults["events"] = TransientError("throttled")
        scene.source.publish("events", *map(message, range(5)))
        await until(lambda: len(scene.queues.batches) == 2)
        del scene.queues.faults["events"]
        await until(lambda: len(scene.source.acked) == 5)

    scene = play(story, "events", send_attempts=10)
    assert scene.source.leases == []
    assert {len(ids) for _, ids in scene.queues.batches} == {5}


def test_a_queue_that_is_down_gets_its_messages_later_and_stops_nobody_else() -> None:
    async def story(scene: Scene) -> None:
        scene.queues.faults["events"] = TransientError("the queue can't be reached")
        scene.source.publish("events", *map(message, range(300)))
        await until(lambda: scene.count("topic_up", "events") == 0 and scene.told("resting"))
        scene.source.publish("meters", *map(message, range(1000, 1200)))
        await until(lambda: len(scene.source.acked) == 200)
        assert scene.queues.taken["events"] == []
        await until(lambda: len(scene.source.opened) > 4)
        del scene.queues.faults["events"]
        await until(lambda: len(scene.source.acked) == 500)

    scene = play(story, "events", "meters", max_messages=100)
    assert sorted(map(int, scene.queues.taken["events"])) == list(range(300))
    assert scene.count("topic_up", "events") == 1
    events = [outstanding for path, outstanding in scene.source.opened if path == path_of("events")]
    assert events[1] == Outstanding(10, 1024 * 1024)
    assert events[-1] == events[0]


def test_a_topic_that_rests_has_given_back_everything_without_trying_it() -> None:
    async def story(scene: Scene) -> None:
        scene.queues.faults["events"] = TransientError("the queue can't be reached")
        scene.source.publish("events", *map(message, range(300)))
        await until(lambda: scene.told("resting") and scene.count("in_flight", "events") == 0)
        assert len(scene.queues.batches) <= 4 * 3

    scene = play(story, "events", rest_seconds=30, rest_seconds_max=30)
    assert {seconds for ids, seconds in scene.source.leases if ids} == {22}
    assert sum(len(ids) for ids, _ in scene.source.leases) == 300


def test_queues_that_hang_leave_room_for_the_others() -> None:
    async def story(scene: Scene) -> None:
        release = threading.Event()
        hanging = {"a", "b", "c"}
        scene.queues.before = lambda topic: (release.wait(100) and None) if topic in hanging else None
        for topic in hanging:
            scene.source.publish(topic, *map(message, range(500)))
        await until(lambda: all(scene.count("in_flight", topic) == 500 for topic in hanging))
        scene.source.publish("d", *map(message, range(1000, 1400)))
        await until(lambda: len(scene.queues.taken["d"]) == 400)
        assert not any(scene.queues.taken[topic] for topic in hanging)
        release.set()
        await until(lambda: len(scene.source.acked) == 1900)

    play(story, "a", "b", "c", "d", max_messages=60, topic_messages=50, sends_per_topic=2, senders=8)


def test_a_topic_whose_queue_is_missing_waits_alone_until_it_is_made() -> None:
    async def story(scene: Scene) -> None:
        scene.queues.missing.add("events")
        scene.source.publish("events", message(1))
        scene.source.publish("meters", message(2))
        await until(lambda: scene.source.acked == ["2"] and scene.queues.lookups.count("events") > 3)
        assert scene.count("topic_up", "events") == 0
        assert scene.source.handed_out[path_of("events")] == []
        scene.queues.missing.clear()
        await until(lambda: len(scene.source.acked) == 2)
        assert scene.count("topic_up", "events") == 1

    scene = play(story, "events", "meters")
    assert scene.count("rests_total", "events", reason="queue_gone") > 2
    assert "there is no such queue" in scene.told("resting")[0]["error"]
    assert scene.told("resting")[0]["level"] == "error"


def test_a_queue_that_disappears_is_looked_up_again() -> None:
    async def story(scene: Scene) -> None:
        scene.source.publish("events", message(1))
        await until(lambda: len(scene.source.acked) == 1)
        scene.queues.faults["events"] = TerminalError("gone")
        scene.source.publish("events", message(2))
        await until(lambda: scene.told("resting"))
        del scene.queues.faults["events"]
        await until(lambda: len(scene.source.acked) == 2)

    scene = play(story, "events", rest_seconds=1, rest_seconds_max=1)
    assert scene.queues.lookups.count("events") > 1
    # A queue that lets nobody in is not asked again and again before the lane rests.
    assert [ids for _, ids in scene.queues.batches] == [["1"], ["2"], ["2"]]


@pytest.mark.parametrize("fault", [None, TransientError("Pub/Sub can't be reached"), TerminalError("Pub/Sub refused")])
def test_a_stream_that_ends_is_opened_again_and_nothing_in_hand_is_given_up(fault: Any) -> None:
    async def story(scene: Scene) -> None:
        release = threading.Event()
        scene.queues.before = lambda _: release.wait(100) and None
        scene.source.publish("events", *map(message, range(40)))
        await until(lambda: scene.count("received_total", "events") == 40)
        scene.source.break_stream("events", fault)
        await until(lambda: len(scene.source.opened) == 2)
        release.set()
        scene.source.publish("events", message(40))
        await until(lambda: len(scene.source.acked) == 41)

    scene = play(story, "events")
    assert scene.source.leases == []
    assert len(scene.queues.taken["events"]) == 41
    assert scene.count("topic_up", "events") == 1


def test_an_idle_topic_whose_stream_was_renewed_is_up() -> None:
    async def story(scene: Scene) -> None:
        await until(lambda: len(scene.source.opened) == 1)
        scene.source.break_stream("events", TransientError("moved"))
        await until(lambda: len(scene.source.opened) == 2 and scene.count("topic_up", "events") == 1)

    assert len(play(story, "events").source.opened) == 2


# ordering keys


def test_messages_of_one_key_arrive_in_their_order_whatever_is_refused() -> None:
    tries: dict[str, int] = {}

    def judge(_: str, message_id: str) -> Verdict | None:
        tries[message_id] = tries.get(message_id, 0) + 1
        number = int(message_id)
        return (
            BUSY
            if number % 5 == 0 and tries[message_id] < 5
            else POISON
            if number % 7 == 0 and tries[message_id] < 3
            else None
        )

    async def story(scene: Scene) -> None:
        scene.queues.judge = judge
        scene.source.publish("events", *(message(number, key="abc"[number % 3]) for number in range(60)))
        await until(lambda: len(scene.source.acked) == 60)

    scene = play(story, "events")
    for rest in range(3):
        in_order = [int(number) for number in scene.queues.taken["events"] if int(number) % 3 == rest]
        assert in_order == list(range(rest, 60, 3))


def test_later_messages_of_a_key_that_are_in_hand_already_do_not_pass_one_that_went_back() -> None:
    """Pub/Sub hands many messages of a key out at once when its subscriber keeps up."""

    class AllAtOnce(FakeSource):
        def _hand_out(self, subscription: str) -> None:
            stream = self.streams.get(subscription)
            if stream is not None and not stream.is_closed and self._waiting[subscription]:
                waiting, self._waiting[subscription] = self._waiting[subscription], []
                stream.arriving.put_nowait([self._numbered(subscription, one) for one in waiting])

    refusals = 4
    scene = Scene("events", topic_messages=10)
    scene.source = AllAtOnce("events")

    def judge(_: str, message_id: str) -> Verdict | None:
        nonlocal refusals
        if message_id == "2" and refusals:
            refusals -= 1
            return POISON
        return None

    async def story() -> None:
        scene.queues.judge = judge
        await scene.start()
        scene.source.publish("events", *(message(number, key="k") for number in range(40)))
        await until(lambda: len(scene.source.acked) == 40)
        await scene.end()

    asyncio.run(story())
    assert scene.queues.taken["events"] == list(map(str, range(40)))


# oversized


def test_what_no_queue_takes_goes_to_the_dead_letters_and_is_acknowledged() -> None:
    large = b'"' + b"x" * MOST_BYTES + b'"'

    async def story(scene: Scene) -> None:
        scene.source.publish("events", message(1), message(2, data=large), message(3))
        await until(lambda: len(scene.source.acked) == 3)

    scene = play(story, "events")
    assert sorted(scene.queues.taken["events"]) == ["1", "3"]
    (letter,) = scene.letters.letters
    assert (letter.sqs_message_id, letter.topic_name, letter.reason.message_id) == ("2", "events", "2")
    assert letter.reason.error_type is Refusal.OVERSIZED
    assert len(letter.body) > MOST_BYTES
    assert scene.count("oversized_total", "events") == 1
    assert scene.count("sent_total", "events") == 2


def test_a_dead_letter_queue_that_is_down_stops_no_topic() -> None:
    large = b"x" * MOST_BYTES

    async def story(scene: Scene) -> None:
        scene.letters.faults += ["throttled"] * 7
        scene.source.publish("events", message(1, data=large), *map(message, range(2, 30)))
        await until(lambda: len(scene.queues.taken["events"]) == 28)
        await until(lambda: len(scene.source.acked) == 29)

    scene = play(story, "events")
    assert len(scene.letters.letters) == 1
    assert not scene.told("resting")


@pytest.mark.parametrize("message_id", ["../../etc/passwd", "a/b", "", "x" * 1000, "ä"])
def test_an_id_that_could_be_a_path_does_not_become_one(message_id: str) -> None:
    from lean_ops.bridge.parcel import Parcel
    from lean_ops.bridge.post import _letter

    letter = _letter("events", Parcel("a", message_id, "", 1, "", MOST_BYTES + 1, 0, 0))
    assert len(letter.sqs_message_id) == 64
    assert letter.sqs_message_id.isalnum()
    assert letter.reason.message_id == message_id
