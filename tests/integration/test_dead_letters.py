"""The dead-letter queue's consumer on a real table: one row for each letter, whatever breaks in between."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.memory_objects import MemoryObjects

from lean_ops.aws.environment import Deployment, queue_of_arn
from lean_ops.ingest.archive_file import read_body
from lean_ops.ingest.dead_letters import KEY, DeadLetters
from lean_ops.lake.catalog import Lake
from lean_ops.lake.once import OnceTable
from lean_ops.lake.shared import SharedTables
from lean_ops.model.errors import TransientError
from lean_ops.model.letter import ReceivedLetter
from lean_ops.model.tables import DLQ_ERRORS
from lean_ops.settings import load_settings
from lean_ops.state.port import TrackedError
from lean_ops.state.sqlite_errors import SqliteErrorTracker

NOW = datetime(2026, 2, 3, 12, tzinfo=UTC)
SENT = datetime(2026, 2, 3, 10, 30, tzinfo=UTC)
DEPLOYMENT = Deployment("lean-ops", "dev")
ARN = "arn:aws:sqs:eu-central-1:000000000000:lean-ops-dev-orders"


class CutOffError(BaseException):
    """The process ends here."""


class Scene:
    """The consumer with a bucket in memory, and the real tracker and table of a home."""

    def __init__(self, folder: Path) -> None:
        self.lake = Lake(load_settings({"home": folder / "home"}, {}).settings)
        self.lake.ensure(self.lake.names.dlq_errors, DLQ_ERRORS)
        self.objects = MemoryObjects()
        self.tracker = SqliteErrorTracker(folder / "home" / "state.db")
        self.now = NOW

    def consumer(self) -> DeadLetters:
        table = OnceTable(self.lake, self.lake.names.dlq_errors, KEY)
        return DeadLetters(
            self.objects,
            self.tracker,
            table,
            lambda arn: DEPLOYMENT.topic_of_queue(queue_of_arn(arn)),
            lambda: self.now,
        )

    def take(self, *letters: ReceivedLetter) -> dict[str, str]:
        return self.consumer().take(letters)

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.lake.load(self.lake.names.dlq_errors).scan().to_arrow().to_pylist()
        return sorted(rows, key=lambda row: str(row[KEY]))

    def archived(self, key: str) -> bytes:
        with self.objects.opened(key) as file:
            return b"".join(read_body(file, key)[1])


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def letter(number: int = 1, body: str = "junk", **said: str) -> ReceivedLetter:
    attributes = {
        "error_type": "MALFORMED_JSON",
        "error_message": "not a JSON object",
        "topic_name": "events",
        "source": "sqs",
        "sqs_message_id": f"s-{number}",
        "receive_count": "1",
        **said,
    }
    return ReceivedLetter(f"d-{number}", body, SENT, 1, attributes)


def test_a_letter_is_archived_indexed_and_booked(scene: Scene) -> None:
    assert scene.take(letter(message_id="m-1")) == {}
    path = "dlq-archive/events/2026-02-03/10/s-1.json"
    (row,) = scene.rows
    assert row == {
        "message_id": "m-1",
        "topic_name": "events",
        "error_type": "MALFORMED_JSON",
        "error_message": "not a JSON object",
        "body": "junk",
        "attributes": json.dumps(dict(letter(message_id="m-1").attributes)),
        "receive_count": 1,
        "archive_path": path,
        "source": "sqs",
        "archived_at": NOW,
        "replay_status": "NEW",
        "replay_id": None,
    }
    assert list(scene.objects.kept) == [path]
    assert scene.archived(path) == b"junk"
    assert scene.tracker.get("s-1", NOW) == TrackedError("s-1", "events", "m-1", "MALFORMED_JSON", path, "NEW", NOW)


def test_letters_of_one_call_are_booked_in_one_commit(scene: Scene) -> None:
    assert scene.take(*(letter(number) for number in range(25))) == {}
    assert len(scene.rows) == 25
    assert len(scene.lake.load(scene.lake.names.dlq_errors).metadata.snapshots) == 1


def test_a_letter_that_comes_again_has_one_row(scene: Scene) -> None:
    scene.take(letter())
    before = (scene.rows, dict(scene.objects.kept))
    scene.now += timedelta(hours=3)
    assert scene.take(letter(), letter(2)) == {}
    assert scene.rows[:1] == before[0]
    assert len(scene.rows) == 2
    assert {key: scene.objects.kept[key] for key in before[1]} == before[1]


def test_a_message_that_was_refused_twice_makes_one_row_though_its_letters_differ(scene: Scene) -> None:
    again = replace(letter(), message_id="d-9", sent_at=SENT + timedelta(hours=2))
    scene.take(letter())
    assert scene.take(again) == {}
    assert [row[KEY] for row in scene.rows] == ["dlq-archive/events/2026-02-03/10/s-1.json"]
    assert scene.take(letter(2), replace(letter(2), message_id="d-10")) == {}
    assert len(scene.rows) == 2


def test_another_letter_under_a_known_id_is_not_taken_for_it(scene: Scene) -> None:
    other = replace(letter(body="other junk"), message_id="d-9")
    for _ in range(2):
        assert scene.take(letter(), other) == {}
    assert sorted(row["body"] for row in scene.rows) == ["junk", "other junk"]
    assert sorted(scene.archived(row[KEY]) for row in scene.rows) == [b"junk", b"other junk"]


def test_letters_of_two_topics_under_one_id_are_two(scene: Scene) -> None:
    other = replace(letter(topic_name="orders"), message_id="d-9")
    for _ in range(2):
        assert scene.take(letter(), other) == {}
    assert sorted(row["topic_name"] for row in scene.rows) == ["events", "orders"]


def test_two_letters_under_one_id_at_once_are_both_kept(scene: Scene) -> None:
    letters = [replace(letter(body=f"junk {number}"), message_id=f"d-{number}") for number in range(8)]
    assert scene.take(*letters) == {}
    assert sorted(row["body"] for row in scene.rows) == [f"junk {number}" for number in range(8)]
    assert sorted(scene.archived(row[KEY]) for row in scene.rows) == [f"junk {number}".encode() for number in range(8)]


def test_a_message_that_its_queue_moved_is_unknown_and_its_queues_topics(scene: Scene) -> None:
    moved = ReceivedLetter("d-1", '{"message_id": "m-5", "payload": 1}', SENT, 6, {}, ARN)
    scene.take(moved)
    (row,) = scene.rows
    assert (row["topic_name"], row["error_type"], row["message_id"]) == ("orders", "UNKNOWN", "m-5")
    assert (row["receive_count"], row[KEY]) == (6, "dlq-archive/orders/2026-02-03/10/d-1.json")


def test_nobodys_letter_is_kept_apart(scene: Scene) -> None:
    scene.take(letter(topic_name="../../etc/passwd"))
    (row,) = scene.rows
    assert (row["topic_name"], row[KEY]) == ("_unknown", "dlq-archive/_unknown/2026-02-03/10/s-1.json")
    assert json.loads(row["attributes"])["topic_name"] == "../../etc/passwd"


def test_bytes_that_are_no_text_are_archived_whatever_they_are(scene: Scene) -> None:
    assert scene.take(letter(body="half \ud800 pair", error_message="\udfff")) == {}
    assert scene.archived(scene.rows[0][KEY]) == "half \ud800 pair".encode("utf-8", "surrogatepass")


# bodies that travelled apart


def test_a_body_that_travelled_apart_is_archived_whole(scene: Scene) -> None:
    body = b'{"message_id": "m-1", "payload": "' + b"x" * 3_000_000 + b'"}'
    scene.objects.kept["oversized/events/s-1.json"] = body
    assert (
        scene.take(letter(body=body[:100].decode(), error_type="OVERSIZED", body_ref="oversized/events/s-1.json")) == {}
    )
    (row,) = scene.rows
    assert scene.archived(row[KEY]) == body
    assert row["body"] == body[: 64 * 1024].decode()
    assert (row["message_id"], row["error_type"]) == ("m-1", "OVERSIZED")


def test_it_is_recognised_when_it_comes_again(scene: Scene) -> None:
    scene.objects.kept["oversized/a"] = b"x" * 2_000_000
    for _ in range(2):
        assert scene.take(letter(body="x", body_ref="oversized/a")) == {}
    assert len(scene.rows) == 1


def test_a_body_that_is_gone_leaves_its_beginning_and_says_so(scene: Scene) -> None:
    assert scene.take(letter(body="beginning", body_ref="oversized/gone")) == {}
    (row,) = scene.rows
    assert row["error_message"] == "not a JSON object; only its beginning is here, oversized/gone is gone"
    assert scene.archived(row[KEY]) == b"beginning"


# what breaks


def breaking(scene: Scene, name: str, error: BaseException) -> Callable[[], None]:
    """Let a step fail; how to mend it."""
    owner: Any = scene.objects if name == "archive" else scene.tracker
    method = "add" if name == "archive" else "put"
    real = getattr(owner, method)

    def fail(*_: object) -> None:
        raise error

    setattr(owner, method, fail)
    return lambda: setattr(owner, method, real)


@pytest.mark.parametrize("step", ["archive", "tracker"])
def test_a_letter_that_can_not_be_kept_stays_in_the_queue(scene: Scene, step: str) -> None:
    mend = breaking(scene, step, TransientError("away"))
    assert scene.take(letter()) == {"d-1": "TransientError: away"}
    assert scene.rows == []
    mend()
    assert scene.take(letter()) == {}
    assert len(scene.rows) == 1


def test_one_letter_that_fails_keeps_no_other_in_the_queue(scene: Scene) -> None:
    real = scene.objects.add

    def add(key: str, content: IO[bytes]) -> bool:
        if key.endswith("s-2.json"):
            raise ZeroDivisionError("a fault of our own")
        return real(key, content)

    scene.objects.add = add  # type: ignore[method-assign]
    assert scene.take(letter(1), letter(2), letter(3)) == {"d-2": "ZeroDivisionError: a fault of our own"}
    assert [row[KEY][-8:] for row in scene.rows] == ["s-1.json", "s-3.json"]


def test_if_the_rows_can_not_be_written_all_letters_stay(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TransientError("20 commits lost")

    with monkeypatch.context() as patch:
        patch.setattr(OnceTable, "append_missing", fail)
        assert set(scene.take(letter(1), letter(2))) == {"d-1", "d-2"}
    assert scene.take(letter(1), letter(2)) == {}
    assert len(scene.rows) == 2


def test_a_file_that_vanished_from_the_archive_is_put_there_again(scene: Scene) -> None:
    scene.take(letter())
    scene.objects.kept.clear()
    assert scene.take(letter()) == {}
    assert scene.archived("dlq-archive/events/2026-02-03/10/s-1.json") == b"junk"
    assert len(scene.rows) == 1


def test_two_consumers_of_the_same_letters_at_once_make_one_row_each(scene: Scene) -> None:
    letters = [letter(number) for number in range(5)]
    barrier = threading.Barrier(3)

    def take(_: int) -> dict[str, str]:
        barrier.wait()
        return scene.take(*letters)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(take, range(3))) == [{}] * 3
    assert [row[KEY][-8:] for row in scene.rows] == [f"s-{number}.json" for number in range(5)]


def test_a_consumer_that_was_overtaken_between_index_and_commit_adds_nothing(scene: Scene) -> None:
    slow = scene.consumer()
    real = scene.tracker.put

    def put(error: TrackedError) -> bool:
        is_first = real(error)
        scene.tracker.put = real  # type: ignore[method-assign]
        assert scene.take(letter()) == {}  # another consumer does all of it, from the index on
        return is_first

    scene.tracker.put = put  # type: ignore[method-assign]
    assert slow.take([letter()]) == {}
    assert len(scene.rows) == 1


POINTS = ("before archive", "after archive", "after tracker", "before commit", "after commit")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(POINTS), st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True)),
        min_size=1,
        max_size=4,
    )
)
def test_however_often_it_is_cut_off_every_letter_has_one_row_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[str, list[int]]]
) -> None:
    scene = Scene(tmp_path_factory.mktemp("home"))
    queue = {number: letter(number) for number in range(5)}
    for point, numbers in calls:
        with pytest.MonkeyPatch.context() as patch:
            _cut_off_at(point, scene, patch)
            with contextlib.suppress(CutOffError):  # or it had nothing to do at that point
                scene.take(*(queue[number] for number in numbers))
    assert scene.take(*queue.values()) == {}
    assert [row[KEY][-8:] for row in scene.rows] == [f"s-{number}.json" for number in range(5)]
    assert len(SharedTables(scene.lake).values(scene.lake.names.dlq_errors, KEY, topic_name="events")) == 5


def _cut_off_at(point: str, scene: Scene, patch: pytest.MonkeyPatch) -> None:
    """The process ends at a point of its first letter that gets there."""
    when, _, step = point.partition(" ")
    owner, method = {
        "archive": (scene.objects, "add"),
        "tracker": (scene.tracker, "put"),
        "commit": (OnceTable, "append_missing"),
    }[step]
    real: Any = getattr(owner, method)

    def cut_off(*given: Any) -> None:
        if when == "after":
            real(*given)
        raise CutOffError

    patch.setattr(owner, method, cut_off)
