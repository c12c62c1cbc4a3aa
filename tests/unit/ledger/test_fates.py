from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from lean_ops.ledger.fates import Fate, ParseError, RawCopy, StandardizedRow, Standing, fates_of

AT = datetime(2026, 2, 3, tzinfo=UTC)
STANDING = Standing("because", {101: 0, 102: 1, 103: 2}, {"b1": 102})


def raw(ingested: int = 1, snapshot: int | None = 101, payload: str = "{}", processed: bool = True) -> RawCopy:
    return RawCopy("events", "m", AT, "k", ingested, snapshot, payload, processed)


def row(ingested: int = 1, batch: str | None = "b1") -> StandardizedRow:
    return StandardizedRow("events", "m", AT, "k", ingested, 900, batch)


def refused(ingested: int = 1, payload: str = "x") -> ParseError:
    return ParseError("events", "m", AT, "k", ingested, 800, payload, "INVALID_JSON", "stopped at 1", "b1", "NEW")


def told(copies: list[RawCopy], rows: list[StandardizedRow], errors: list[ParseError]) -> list[tuple[str, str]]:
    return [(found.fate.value, found.reason) for found in fates_of(copies, STANDING, rows, errors)]


def test_a_single_copy_is_standardized_with_its_batch_and_snapshot() -> None:
    assert told([raw()], [row()], []) == [("standardized", "batch b1, snapshot 900")]


def test_a_later_copy_is_a_duplicate_of_the_first() -> None:
    assert told([raw(5, 103), raw(1, 101)], [row()], []) == [
        ("standardized", "batch b1, snapshot 900"),
        ("duplicate", "the copy of snapshot 101 with ingestion_ts 1 is the standardized one"),
    ]


def test_inside_a_batch_the_lowest_time_and_then_payload_wins_whatever_snapshot_it_came_in() -> None:
    fates = fates_of([raw(1, 101, "b"), raw(1, 102, "a"), raw(1, 103, "0")], STANDING, [row()], [])
    assert [(found.copy.payload, found.fate) for found in fates] == [
        ("b", Fate.DUPLICATE),
        ("a", Fate.STANDARDIZED),
        ("0", Fate.DUPLICATE),  # of a later batch: it came too late to win
    ]


def test_of_a_rebuilt_row_the_copy_that_an_earlier_batch_had_read_is_the_first() -> None:
    rebuilt = Standing("because", STANDING.raw_order, {"rebuild": 103}, turns=(101, 103))
    fates = fates_of([raw(1, 101, "b"), raw(1, 102, "a"), raw(1, 103, "0")], rebuilt, [row(batch="rebuild")], [])
    assert [(found.copy.payload, found.fate) for found in fates] == [
        ("b", Fate.STANDARDIZED),
        ("a", Fate.DUPLICATE),
        ("0", Fate.DUPLICATE),
    ]


def test_without_the_batch_in_the_history_the_oldest_copy_of_that_time_counts() -> None:
    fates = fates_of([raw(1, 102, "a"), raw(1, 101, "b")], STANDING, [row(batch="expired")], [])
    assert [(found.copy.payload, found.fate) for found in fates] == [("b", Fate.STANDARDIZED), ("a", Fate.DUPLICATE)]


def test_a_parse_error_says_what_the_parser_said_and_its_copies_are_duplicates() -> None:
    assert told([raw(1, 101, "x"), raw(2, 102, "x")], [], [refused()]) == [
        ("parse_error", "INVALID_JSON: stopped at 1"),
        ("duplicate", "the copy of snapshot 101 with ingestion_ts 1 is in parse_errors"),
    ]


def test_a_replayed_parse_error_is_standardized() -> None:
    assert told([raw()], [row()], [refused()]) == [("standardized", "batch b1, snapshot 900")]


def test_a_copy_that_no_batch_has_read_waits_even_if_another_is_standardized() -> None:
    assert told([raw(1, 101), raw(9, 103, processed=False)], [row()], []) == [
        ("standardized", "batch b1, snapshot 900"),
        ("pending", "because"),
    ]


def test_a_copy_that_was_read_and_is_nowhere_is_missing() -> None:
    assert told([raw()], [], []) == [
        ("missing", "read by a batch, but neither in Standardized nor in parse_errors"),
    ]


def test_the_same_id_at_another_time_is_another_message() -> None:
    other = RawCopy("events", "m", AT.replace(hour=5), "k", 7, 102, "{}", True)
    assert [found.fate for found in fates_of([raw(), other], STANDING, [row()], [])] == [
        Fate.STANDARDIZED,
        Fate.MISSING,
    ]


copies_of_one = st.lists(
    st.builds(
        raw,
        st.integers(1, 3),
        st.sampled_from([101, 102, 103, 999, None]),
        st.sampled_from(["a", "b"]),
        st.booleans(),
    )
)


@given(copies_of_one, st.lists(st.builds(row, st.integers(1, 3)), max_size=1), st.booleans())
def test_every_copy_has_one_fate_and_a_message_at_most_one_row(
    copies: list[RawCopy], rows: list[StandardizedRow], parse_error: bool
) -> None:
    fates = fates_of(copies, STANDING, rows, [refused()] if parse_error else [])
    assert Counter(map(id, copies)) == Counter(id(found.copy) for found in fates)
    counted = Counter(found.fate for found in fates)
    read = sum(copy.processed for copy in copies)
    assert counted[Fate.PENDING] == len(copies) - read
    firsts = counted[Fate.STANDARDIZED] + counted[Fate.PARSE_ERROR]
    assert firsts == (1 if read and (rows or parse_error) else 0)
    assert counted[Fate.MISSING] == (0 if rows or parse_error else read)
