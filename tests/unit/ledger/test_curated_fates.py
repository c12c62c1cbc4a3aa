from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.ledger.curated_fates import (
    BatchEnd,
    CuratedError,
    CuratedFate,
    CuratedRow,
    CuratedStanding,
    CuratedState,
    Evidence,
    RowFate,
    batch_that_read,
    curated_fates,
)
from lean_ops.ledger.fates import StandardizedRow

AT = datetime(2026, 2, 3, tzinfo=UTC)
STANDING = CuratedStanding("because")
C1, C2, C3 = (BatchEnd(f"c{number}", 700 + number, 900 + number) for number in (1, 2, 3))


def row(name: str, hour: int = 0, key: str | None = "k") -> StandardizedRow:
    return StandardizedRow("events", name, AT + timedelta(hours=hour), key, 1, 900, "b1")


def curated(version: StandardizedRow, batch: BatchEnd = C1) -> CuratedRow:
    values = (version.topic, version.message_id, version.publish_time, version.idempotency_key, version.ingestion_ts)
    return CuratedRow(*values, batch.snapshot_id, batch.batch_id, "1.0.0", AT, AT)


def refused(version: StandardizedRow) -> CuratedError:
    values = (version.topic, version.message_id, version.publish_time, version.idempotency_key, version.ingestion_ts)
    return CuratedError(*values, 800, "TYPE_CAST", ("amount",), "amount: 'x' is no INT", "1.0.0", "c1", "NEW")


def state(batch: BatchEnd, *rows: CuratedRow) -> CuratedState:
    return CuratedState(batch.snapshot_id, {one.idempotency_key or "": one for one in rows})


def told(evidence: Evidence, *rows: StandardizedRow, standing: CuratedStanding = STANDING) -> RowFate:
    """The fate of the first of the rows."""
    return next(found for found in curated_fates(rows, evidence, standing) if found.row == rows[0])


OLD, NEW, NEWEST = row("old", 1), row("new", 2), row("newest", 3)


def test_the_keys_current_row_is_curated_with_its_batch_snapshot_and_times() -> None:
    found = told(Evidence(state(C2, curated(OLD)), read={OLD.message}), OLD)
    assert (found.fate, found.reason) == (CuratedFate.CURATED, "the key's current row: batch c1, snapshot 701")
    assert (found.batch_id, found.snapshot_id, found.version) == ("c1", 701, curated(OLD))
    assert found.is_current


def test_a_row_that_a_later_batch_outdid_was_replaced_by_that_batchs_row() -> None:
    evidence = Evidence(
        current=state(C3, curated(NEWEST, C3)),
        read={OLD.message, NEW.message, NEWEST.message},
        batches={OLD.message: C1, NEW.message: C2},
        past=[state(C1, curated(OLD)), state(C2, curated(NEW, C2))],
    )
    found = told(evidence, OLD)
    assert (found.fate, found.snapshot_id, found.batch_id) == (CuratedFate.REPLACED, 701, "c1")
    assert found.reason == "the key's row after batch c1, until message new of batch c2 took its place"
    assert found.version == curated(OLD)
    assert not found.is_current
    assert told(evidence, NEW).reason == "the key's row after batch c2, until message newest of batch c3 took its place"


def test_a_row_whose_own_batch_ended_with_a_newer_version_is_superseded() -> None:
    both_read = {OLD.message, NEW.message}
    in_one_batch = Evidence(state(C1, curated(NEW)), read=both_read, batches={OLD.message: C1})
    found = told(in_one_batch, OLD)
    assert (found.fate, found.snapshot_id, found.batch_id) == (CuratedFate.SUPERSEDED, 701, "c1")
    assert found.reason == "batch c1 ended with a newer version of the key: message new of batch c1"
    late = Evidence(state(C2, curated(NEW)), read=both_read, batches={OLD.message: C2})
    assert told(late, OLD).reason == "batch c2 ended with a newer version of the key: message new of batch c1"


def test_the_same_id_at_another_time_is_another_version() -> None:
    again = replace(OLD, publish_time=NEW.publish_time)
    evidence = Evidence(state(C1, curated(again)), read={OLD.message, again.message}, batches={OLD.message: C1})
    assert [found.fate for found in curated_fates([again, OLD], evidence, STANDING)] == [
        CuratedFate.SUPERSEDED,
        CuratedFate.CURATED,
    ]


def test_a_row_whose_batch_left_the_history_was_replaced_or_superseded() -> None:
    found = told(Evidence(state(C3, curated(NEW, C2)), read={OLD.message}), OLD)
    assert found.fate is CuratedFate.SUPERSEDED
    assert found.reason.startswith(
        "replaced or superseded, which can't be told apart any more: message new of batch c2"
    )
    assert (found.batch_id, found.snapshot_id) == (None, None)


def test_a_refused_row_says_what_its_error_says_and_where_that_is() -> None:
    evidence = Evidence(state(C1), refused={OLD.message: refused(OLD)}, read={OLD.message})
    found = told(evidence, OLD)
    assert (found.fate, found.reason) == (CuratedFate.ERROR, "TYPE_CAST: amount: 'x' is no INT")
    assert (found.batch_id, found.snapshot_id) == ("c1", 800)


def test_a_row_without_a_key_is_nowhere_but_in_the_errors() -> None:
    keyless = row("m", key=None)
    error = {keyless.message: replace(refused(keyless), error_type="CDE_VIOLATION")}
    evidence = Evidence(state(C1, curated(row("other", key=""))), error, {keyless.message}, {keyless.message: C1})
    assert told(evidence, keyless).fate is CuratedFate.ERROR
    assert told(replace(evidence, refused={}), keyless).fate is CuratedFate.MISSING


def test_a_replayed_error_is_curated() -> None:
    evidence = Evidence(state(C1, curated(OLD)), {OLD.message: refused(OLD)}, {OLD.message})
    assert told(evidence, OLD).fate is CuratedFate.CURATED


def test_a_row_that_no_batch_has_read_waits_even_if_its_error_is_written_already() -> None:
    evidence = Evidence(state(C1, curated(OLD)), {NEW.message: refused(NEW)}, {OLD.message})
    assert (told(evidence, NEW).fate, told(evidence, NEW).reason) == (CuratedFate.PENDING, "because")
    ends = CuratedStanding("because", "schema 1.0.0 ends at Standardized")
    found = told(evidence, NEW, standing=ends)
    assert (found.fate, found.reason) == (CuratedFate.NOT_CURATED, "schema 1.0.0 ends at Standardized")
    assert told(evidence, OLD, standing=ends).fate is CuratedFate.CURATED  # it got there before the schema changed


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (
            Evidence(state(C1), read={OLD.message}, batches={OLD.message: C1}),
            "read by batch c1, but neither in Curated nor in its errors",
        ),
        (Evidence(state(C1), read={OLD.message}), "read by a batch, but neither in Curated nor in its errors"),
        (
            Evidence(state(C2), read={OLD.message}, batches={OLD.message: C1}, past=[state(C1, curated(OLD))]),
            "the key's row after batch c1, but Curated has no row of the key any more",
        ),
    ],
)
def test_a_row_that_was_read_and_is_nowhere_is_missing(evidence: Evidence, reason: str) -> None:
    found = told(evidence, OLD)
    assert (found.fate, found.reason) == (CuratedFate.MISSING, reason)


def test_a_keys_versions_come_newest_last_and_what_curated_chose_counts_more_than_publish_time() -> None:
    waiting, other = row("waiting", 9), row("other", 5, key="a")
    evidence = Evidence(
        state(C1, curated(OLD), curated(other)),
        read={OLD.message, NEW.message, other.message},
        batches={NEW.message: C1},
    )
    found = curated_fates([waiting, OLD, NEW, other], evidence, STANDING)
    assert [one.row.message_id for one in found] == ["other", "new", "old", "waiting"]
    assert [one.is_current for one in found] == [True, False, True, False]


# which batch read a row

ORDER = {901: 0, 902: 1, 903: 2}


@pytest.mark.parametrize(
    ("place", "batches", "whole", "expected"),
    [
        (0, [C1, C2, C3], True, C1),
        (1, [C1, C2, C3], True, C2),
        (2, [C1, C3], True, C3),
        (1, [C2, C3], False, None),  # an older batch that is gone may have been it
        (2, [C2, C3], False, C3),
        (-1, [C1, C2], True, C1),  # older than all that Standardized keeps
        (-1, [C1, C2], False, None),
        (-1, [BatchEnd("c0", 700, 55), C1], True, None),  # whether c0 or c1 read it can't be said
        (0, [BatchEnd("c0", 700, 55), C1], False, C1),  # c0 read nothing that is kept
        (2, [C1, C2], True, None),
        (0, [], True, None),
    ],
)
def test_the_oldest_batch_that_covers_a_snapshot_read_its_rows(
    place: int, batches: list[BatchEnd], whole: bool, expected: BatchEnd | None
) -> None:
    assert batch_that_read(place, batches, ORDER, whole) == expected


# any course of events

arrivals = st.lists(
    st.tuples(st.sampled_from("kl"), st.integers(0, 3), st.integers(0, 9), st.booleans()), min_size=1, max_size=12
)


@given(arrivals, st.integers(0, 3))
def test_every_row_has_the_fate_that_its_batches_gave_it(course: list[tuple[str, int, int, bool]], done: int) -> None:
    """Batches 0 to `done` have run; of a key's valid versions the one of the latest hour wins, then the greater id."""
    versions = {row(f"m{n:02}", hour, key): (batch, bad) for n, (key, batch, hour, bad) in enumerate(course)}
    ends = [BatchEnd(f"c{number}", 700 + number, 900 + number) for number in range(4)]
    states: list[CuratedState] = []
    for number in range(done + 1):
        rows = dict(states[-1].rows) if states else {}
        for version, (batch, bad) in versions.items():
            held = rows.get(version.idempotency_key or "")
            newer = held is None or (held.publish_time, held.message_id) < (version.publish_time, version.message_id)
            if batch == number and not bad and newer:
                rows[version.idempotency_key or ""] = curated(version, ends[number])
        states.append(CuratedState(ends[number].snapshot_id, rows))
    read = {version: batch for version, (batch, _) in versions.items() if batch <= done}
    evidence = Evidence(
        states[-1],
        {version.message: refused(version) for version, batch in read.items() if versions[version][1]},
        {version.message for version in read},
        {version.message: ends[batch] for version, batch in read.items()},
        states[:-1],
    )
    for found in curated_fates(list(versions), evidence, STANDING):
        batch, bad = versions[found.row]
        if batch > done:
            expected = CuratedFate.PENDING
        elif bad:
            expected = CuratedFate.ERROR
        elif states[-1].holds(found.row):
            expected = CuratedFate.CURATED
        else:
            expected = CuratedFate.REPLACED if states[batch].holds(found.row) else CuratedFate.SUPERSEDED
        assert found.fate is expected
