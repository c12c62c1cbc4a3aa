"""`lean-ops replay dlq` on a real lake: what lands, what is refused again, and what a crash leaves behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.integration.ingest_home import START, TOPIC, Home, bodies, body

from lean_ops.entrypoints.cli import main
from lean_ops.ledger.recount import Recounter
from lean_ops.model.errors import TransientError, WrongUseError
from lean_ops.operate import replay_dlq
from lean_ops.operate.replay_dlq import Replayed
from lean_ops.state.port import TrackedError
from lean_ops.state.sqlite_errors import SqliteErrorTracker
from lean_ops.wiring import utc_now

LARGE = body(1, payload={"x": "y" * 2000})
BAD = body(2, publish_time="yesterday")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home whose first ingestion took small bodies only; now it takes larger ones."""
    first = Home(tmp_path, max_body_bytes=1024)
    first.take(body(0) + LARGE + "junk\n" + BAD)
    first.services.presence.leave()
    home = Home(tmp_path)
    home.clock.now = START + timedelta(hours=1)
    yield home
    home.services.presence.leave()


def replay(home: Home, where: str | None = None) -> Replayed:
    return home.services.dlq_replay().replay(TOPIC, where)


def statuses(home: Home) -> dict[str, str]:
    return {row["error_type"]: row["replay_status"] for row in home.dead_letters}


def heads(home: Home) -> list[Any]:
    names = home.services.lake.names
    tables = (names.raw(TOPIC), names.dlq_errors, names.ops("reconciliation_log"))
    snapshots = [home.services.lake.load(name).current_snapshot() for name in tables]
    return [snapshot.snapshot_id if snapshot else None for snapshot in snapshots]


def assert_balanced(home: Home) -> None:
    reconciler = home.services.reconciler(home.services.state)
    for account in (Recounter(reconciler).recount(TOPIC).account, *reconciler.reconcile([TOPIC])):
        assert [finding.message for zone in account.zones for finding in zone.findings] == []


def test_what_is_taken_now_lands_with_its_own_id_and_time(home: Home) -> None:
    replayed = replay(home)
    assert (replayed.landed, replayed.already, len(replayed.refused), replayed.unreadable) == (1, 0, 2, [])
    (row,) = [row for row in home.raw if row["message_id"] == "m-1"]
    assert row["publish_time"].isoformat() == "2026-02-02T10:15:30.123456+00:00"
    assert row["json_payload"] == json.dumps({"x": "y" * 2000})
    assert row["ingestion_ts"] == int((START + timedelta(hours=1)).timestamp())


def test_every_letter_says_what_became_of_it(home: Home) -> None:
    before = {row["archive_path"]: row for row in home.dead_letters}
    replayed = replay(home)
    assert statuses(home) == {"OVERSIZED": "FIXED", "MALFORMED_JSON": "FAILED", "INVALID_CONTRACT": "FAILED"}
    for row in home.dead_letters:
        same = {**before[row["archive_path"]], "replay_status": row["replay_status"], "replay_id": replayed.replay_id}
        assert {**row, "attributes": "{}"} == same
    reasons = {json.loads(row["attributes"]).get("replay", {}).get("error_type") for row in home.dead_letters}
    assert reasons == {None, "MALFORMED_JSON", "INVALID_CONTRACT"}


def test_the_books_know_it_as_a_replay_and_balance(home: Home) -> None:
    replay(home)
    (line,) = [row for row in home.ledger if row["kind"] == "REPLAY"]
    assert (line["zone"], line["records_in"], line["inserted"], line["errors"]) == ("raw", 1, 1, 0)
    assert line["balanced"]
    assert_balanced(home)


def test_twice_changes_nothing(home: Home) -> None:
    replay(home)
    before = heads(home)
    again = replay(home)
    assert (again.landed, again.already, len(again.refused)) == (0, 0, 2)
    assert heads(home) == before


def test_a_letter_that_failed_for_another_reason_says_the_new_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    replay(home)
    real = replay_dlq.decide
    monkeypatch.setattr(replay_dlq, "decide", lambda *given: real(*given)._replace(error_message="for another reason"))
    again = replay(home)
    assert {json.loads(row["attributes"])["replay"]["error_message"] for row in home.dead_letters[1:]} == {
        "for another reason"
    }
    assert {row["replay_id"] for row in home.dead_letters if row["replay_status"] == "FAILED"} == {again.replay_id}


def test_a_message_that_is_in_raw_already_gets_no_second_copy(home: Home) -> None:
    home.take(LARGE)
    replayed = replay(home)
    assert (replayed.landed, replayed.already) == (0, 1)
    assert statuses(home)["OVERSIZED"] == "FIXED"
    assert sum(row["message_id"] == "m-1" for row in home.raw) == 1
    assert [row["kind"] for row in home.ledger] == ["BATCH"] * 2
    assert_balanced(home)


def test_two_letters_of_one_message_land_once(home: Home, tmp_path: Path) -> None:
    small = Home(tmp_path, max_body_bytes=1024)
    small.take(LARGE)
    small.services.presence.leave()
    replayed = replay(home)
    assert (replayed.landed, replayed.already) == (1, 1)
    assert sum(row["message_id"] == "m-1" for row in home.raw) == 1
    assert [row["replay_status"] for row in home.dead_letters].count("FIXED") == 2
    assert_balanced(home)


def test_a_message_with_the_same_id_and_another_time_is_another_message(home: Home) -> None:
    home.take(body(1, publish_time="2026-02-02T10:15:30.123457Z"))
    assert replay(home).landed == 1


@pytest.mark.parametrize("where", ["land", "settle", "restate"])
def test_a_replay_that_was_cut_off_is_finished_by_the_next(
    home: Home, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise TransientError("cut off")

    with monkeypatch.context() as patch:
        if where == "restate":
            patch.setattr(replay_dlq, "restate", fail)
        else:
            patch.setattr(home.services.landing, where, fail)
        with pytest.raises(TransientError, match="cut off"):
            replay(home)
    assert statuses(home)["OVERSIZED"] == "NEW"
    home.services.presence.leave()  # its process is gone
    next_one = Home(home.folder)
    replayed = replay(next_one)
    assert (replayed.landed, replayed.already) == ((1, 0) if where == "land" else (0, 1))
    assert sum(row["message_id"] == "m-1" for row in next_one.raw) == 1
    assert sorted(row["kind"] for row in next_one.ledger) == ["BATCH", "REPLAY"]
    assert statuses(next_one)["OVERSIZED"] == "FIXED"
    assert_balanced(next_one)
    next_one.services.presence.leave()


def test_only_letters_that_meet_a_condition_are_replayed(home: Home) -> None:
    replayed = replay(home, "error_type = 'MALFORMED_JSON' OR message_id = 'm-1' -- and no more")
    assert (replayed.landed, len(replayed.refused)) == (1, 1)
    assert statuses(home) == {"OVERSIZED": "FIXED", "MALFORMED_JSON": "FAILED", "INVALID_CONTRACT": "NEW"}
    assert replay(home, "message_id = 'nobody'").letters == 0


@pytest.mark.parametrize(
    "where",
    ["", "nonsense", "true; DROP TABLE x", "(SELECT 1", "message_id IN (SELECT * FROM read_csv('/etc/passwd'))"],
)
def test_a_condition_that_can_not_be_asked_is_wrong_use_and_changes_nothing(home: Home, where: str) -> None:
    before = heads(home)
    with pytest.raises(WrongUseError):
        replay(home, where)
    assert heads(home) == before


def test_a_condition_can_not_reach_another_topics_letters(home: Home, tmp_path: Path) -> None:
    others = tmp_path / "others.jsonl"
    others.write_text("other junk\n" + bodies(1))
    home.services.intake("orders", "orders").take("orders", [str(others)])
    assert replay(home, "topic_name = 'orders'").letters == 0
    assert replay(home, "true) OR (topic_name = 'orders'").letters == 3
    (foreign,) = [row for row in home.dead_letters if row["topic_name"] == "orders"]
    assert foreign["replay_status"] == "NEW"


def test_a_file_of_another_topic_is_not_taken_into_this_one(home: Home) -> None:
    (letter,) = [row for row in home.dead_letters if row["error_type"] == "OVERSIZED"]
    file = home.services.settings.home / letter["archive_path"]
    file.write_bytes(file.read_bytes().replace(b'"topic_name": "events"', b'"topic_name": "orders"'))
    replayed = replay(home)
    assert ["topic 'orders'" in refusal.reason for refusal in replayed.unreadable] == [True]
    assert replayed.landed == 0


def test_letters_that_can_not_be_read_are_told_and_stay_as_they_are(home: Home) -> None:
    folder = home.services.settings.home
    paths = {row["error_type"]: folder / row["archive_path"] for row in home.dead_letters}
    paths["MALFORMED_JSON"].unlink()
    paths["INVALID_CONTRACT"].write_bytes(b"spoilt")
    replayed = replay(home)
    reasons = [refusal.reason for refusal in replayed.unreadable]
    assert (replayed.landed, len(reasons)) == (1, 2)
    assert all(any(word in reason for reason in reasons) for word in ("missing from the archive", "is damaged"))
    assert statuses(home) == {"OVERSIZED": "FIXED", "MALFORMED_JSON": "NEW", "INVALID_CONTRACT": "NEW"}


def test_many_letters_land_in_flushes_of_bounded_size(tmp_path: Path) -> None:
    small = Home(tmp_path, max_body_bytes=1024)
    small.take("".join(body(number, payload={"x": "y" * 2000}) for number in range(6)) + "junk\n" * 3)
    small.services.presence.leave()
    home = Home(tmp_path, flush_bytes=5000)
    replayed = replay(home)
    assert (replayed.landed, len(replayed.refused)) == (6, 3)
    assert [row["kind"] for row in home.ledger].count("REPLAY") == 2
    assert_balanced(home)
    home.services.presence.leave()


def test_a_body_that_is_still_too_large_is_refused_again(tmp_path: Path) -> None:
    home = Home(tmp_path, max_body_bytes=1024)
    home.take(body(1, payload={"x": "y" * 3_000_000}))
    replayed = replay(home)
    assert [(refusal.error_type, refusal.message_id) for refusal in replayed.refused] == [("OVERSIZED", "m-1")]
    home.services.presence.leave()


def test_letters_of_a_queue_are_marked_in_the_tracker(home: Home) -> None:
    tracker = SqliteErrorTracker(home.services.settings.state_file)
    (letter,) = [row for row in home.dead_letters if row["error_type"] == "OVERSIZED"]
    path = "dlq-archive/events/2026-02-03/10/11-aa.json"
    (file := home.services.settings.home / path).parent.mkdir(parents=True)
    file.write_bytes((home.services.settings.home / letter["archive_path"]).read_bytes())
    home.services.shared.append_rows(
        home.services.lake.names.dlq_errors, [{**letter, "archive_path": path, "source": "sqs"}]
    )
    tracker.put(TrackedError("11-aa", TOPIC, "m-1", "OVERSIZED", path, "NEW", home.clock.now))
    replay(home)
    tracked = tracker.get("11-aa", home.clock.now)
    assert tracked is not None
    assert tracked.status == "FIXED"


def test_a_topic_without_dead_letters_has_nothing_to_replay(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert replay(home).letters == 0
    home.take(bodies(1))
    before = heads(home)
    assert replay(home).letters == 0
    assert heads(home) == before
    home.services.presence.leave()


# the command


def run(capsys: pytest.CaptureFixture[str], home: Home, *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as left:
        main(["--home", str(home.folder / "home"), *arguments])
    return int(left.value.code or 0), capsys.readouterr().out


def test_the_command_says_what_became_of_the_letters(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, home, "replay", "dlq", TOPIC)
    assert code == 0
    assert "3 dead letters: 1 landed in RAW, 2 refused again" in out
    assert "refused again: MALFORMED_JSON: not a JSON object" in out
    _, out = run(capsys, home, "trace", "m-1")
    assert "replay FIXED" in out
    assert "raw copy" in out


def test_the_command_speaks_json(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, home, "replay", "dlq", TOPIC, "--where", "error_type = 'OVERSIZED'", "--json")
    document = json.loads(out)
    assert (code, document["letters"], document["landed"], document["refused"]) == (0, 1, 1, [])


def test_a_letter_that_can_not_be_read_is_work_that_failed(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for row in home.dead_letters:
        (home.services.settings.home / row["archive_path"]).unlink()
    code, out = run(capsys, home, "replay", "dlq", TOPIC)
    assert code == 1
    assert "missing from the archive" in out


def test_while_another_replay_is_at_work_nothing_is_done(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    services = home.services
    lease = services.state.acquire(f"replay:{TOPIC}", services.presence.announce(), utc_now())
    before = heads(home)
    code, out = run(capsys, home, "replay", "dlq", TOPIC)
    assert (code, "another replay is at work" in out) == (0, True)
    assert heads(home) == before
    services.state.release(lease)  # type: ignore[arg-type]


def test_a_name_that_is_no_topics_is_wrong_use(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, home, "replay", "dlq", "_unknown")[0] == 2
