from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.model.batch import Batch, Zone
from lean_ops.model.tables import OPS_TABLES
from lean_ops.standardize.columns import PayloadColumns, kinds_property
from lean_ops.standardize.drift import Drift, DriftKind, drift_rows, find_drift
from lean_ops.standardize.naming import natural_name

Places = dict[str, Counter[str]]
NOTHING: Places = {}
OWN_NAMES = frozenset({"message_id", "_extra", "_batch_id"})


def columns(**names: str) -> PayloadColumns:
    """Columns `name=pointer`."""
    return PayloadColumns({pointer: name for name, pointer in names.items()}, OWN_NAMES | set(names))


def seen(**kinds: int) -> Counter[str]:
    return Counter(kinds)


A = columns(a="/a")


def test_a_batch_that_looks_like_the_ones_before_has_no_drift() -> None:
    assert find_drift(A, A, {"/a": seen(string=9)}, {"/a": seen(string=3)}, ()) == []
    assert find_drift(A, A, {"/a": seen(string=9)}, NOTHING, ()) == []
    assert find_drift(columns(), columns(), NOTHING, NOTHING, ()) == []


def test_a_new_column_is_told_with_the_number_of_records_that_have_it() -> None:
    after = columns(a="/a", event_userid="/event/userId")
    drift = find_drift(A, after, NOTHING, {"/event/userId": seen(string=3, number=1)}, ())
    new = Drift(DriftKind.NEW_COLUMN, "event_userid", "/event/userId", None, "event_userid", 4)
    assert drift[0] == new
    assert [entry.kind for entry in drift] == [DriftKind.NEW_COLUMN, DriftKind.TYPE_CHANGE]


def test_a_column_that_this_batch_no_longer_fills_is_new_all_the_same() -> None:
    assert find_drift(columns(), A, NOTHING, NOTHING, ()) == [Drift(DriftKind.NEW_COLUMN, "a", "/a", None, "a", 0)]


def test_a_name_that_another_leaf_owns_is_a_collision_that_names_the_owner() -> None:
    before = columns(userid="/userId")
    after = columns(userid="/userId", userid__1f2e="/userid")
    assert find_drift(before, after, NOTHING, {"/userid": seen(string=2)}, ()) == [
        Drift(DriftKind.NEW_COLUMN, "userid__1f2e", "/userid", None, "userid__1f2e", 2),
        Drift(DriftKind.COLLISION, "userid__1f2e", "/userid", "/userId", "userid__1f2e", 2),
    ]


def test_a_name_that_the_table_needs_itself_is_a_collision_with_that_name() -> None:
    after = columns(_file__ab12="/_file")
    drift = find_drift(columns(), after, NOTHING, {"/_file": seen(string=2)}, ())
    assert drift[1:] == [Drift(DriftKind.COLLISION, "_file__ab12", "/_file", "_file", "_file__ab12", 2)]


def test_a_collision_is_told_once_when_its_column_is_made() -> None:
    both = columns(userid="/userId", userid__1f2e="/userid")
    assert find_drift(both, both, NOTHING, {"/userid": seen(string=2)}, ()) == []


def test_a_name_that_was_only_cut_is_no_collision() -> None:
    pointer = "/" + "x" * 300
    after = PayloadColumns({pointer: natural_name(pointer)}, frozenset({natural_name(pointer)}))
    assert [entry.kind for entry in find_drift(columns(), after, NOTHING, NOTHING, ())] == [DriftKind.NEW_COLUMN]


def test_leaves_that_found_no_room_are_told_once_per_path() -> None:
    places = {"/a": seen(string=5), "/b/C": seen(string=1, number=2), "/d": seen(array=1)}
    first = find_drift(A, A, NOTHING, places, ())
    assert first == [
        Drift(DriftKind.COLUMN_LIMIT, "b_c", "/b/C", None, "_extra", 3),
        Drift(DriftKind.COLUMN_LIMIT, "d", "/d", None, "_extra", 1),
    ]
    assert find_drift(A, A, NOTHING, places, {"/b/C"}) == first[1:]
    assert find_drift(A, A, NOTHING, places, {"/b/C", "/d"}) == []


def test_a_logged_limit_does_not_hide_a_column_that_was_made_after_all() -> None:
    drift = find_drift(columns(), A, NOTHING, {"/a": seen(string=1)}, {"/a"})
    assert [entry.kind for entry in drift] == [DriftKind.NEW_COLUMN]


def test_a_kind_that_the_column_has_not_mostly_held_is_a_type_change() -> None:
    held = {"/a": seen(number=100, string=7)}
    assert find_drift(A, A, held, {"/a": seen(string=3, number=2, object=1)}, ()) == [
        Drift(DriftKind.TYPE_CHANGE, "a", "/a", "number", "object", 1),
        Drift(DriftKind.TYPE_CHANGE, "a", "/a", "number", "string", 3),
    ]


def test_what_a_column_held_before_counts_and_not_the_batchs_own_majority() -> None:
    drift = find_drift(A, A, {"/a": seen(number=1)}, {"/a": seen(string=1000)}, ())
    assert drift == [Drift(DriftKind.TYPE_CHANGE, "a", "/a", "number", "string", 1000)]


@pytest.mark.parametrize("held", [NOTHING, {"/a": seen()}])
def test_a_new_column_is_measured_against_its_own_majority(held: Places) -> None:
    assert find_drift(A, A, held, {"/a": seen(string=5, number=2)}, ()) == [
        Drift(DriftKind.TYPE_CHANGE, "a", "/a", "string", "number", 2)
    ]


@pytest.mark.parametrize("order", [("string", "number"), ("number", "string")])
def test_a_tie_is_broken_by_name_whatever_came_first(order: tuple[str, str]) -> None:
    tie = {"/a": Counter(dict.fromkeys(order, 4))}
    for held, places in ((tie, {"/a": seen(string=1, number=1)}), (NOTHING, tie)):
        [change] = find_drift(A, A, held, places, ())
        assert (change.old_value, change.new_value) == ("number", "string")


def test_leaves_without_a_column_have_no_type_to_change() -> None:
    drift = find_drift(columns(), columns(), {"/a": seen(number=9)}, {"/a": seen(string=1)}, {"/a"})
    assert drift == []


kinds = st.dictionaries(
    st.sampled_from(["string", "number", "boolean", "object", "array"]), st.integers(1, 9), min_size=1
).map(Counter)
pointers = st.sampled_from(["/a", "/b", "/c", "/d"])


@given(
    st.sets(pointers), st.sets(pointers), st.dictionaries(pointers, kinds), st.dictionaries(pointers, kinds), st.data()
)
def test_every_leaf_is_told_as_new_known_or_without_room_and_never_twice(
    known: set[str], added: set[str], held: Places, places: Places, data: st.DataObject
) -> None:
    before = columns(**{pointer[1:]: pointer for pointer in known})
    after = columns(**{pointer[1:]: pointer for pointer in known | added})
    logged = data.draw(st.sets(pointers))
    drift = find_drift(before, after, held, places, logged)

    def told(kind: DriftKind) -> list[str]:
        return sorted(entry.json_pointer for entry in drift if entry.kind is kind)

    assert told(DriftKind.NEW_COLUMN) == sorted(added - known)
    assert told(DriftKind.COLUMN_LIMIT) == sorted(places.keys() - known - added - logged)
    changes = [entry for entry in drift if entry.kind is DriftKind.TYPE_CHANGE]
    for pointer in places.keys() & (known | added):
        mine = {entry.new_value: entry for entry in changes if entry.json_pointer == pointer}
        mostly = {entry.old_value for entry in mine.values()}
        assert len(mostly) <= 1
        assert {*mine, *mostly} >= set(places[pointer]) or mostly == set()
        assert all(entry.records == places[pointer][kind] for kind, entry in mine.items() if kind)


def test_drift_rows_have_exactly_the_drift_logs_columns() -> None:
    now = datetime(2026, 2, 3, tzinfo=UTC)
    batch = Batch("events", Zone.STANDARDIZED, 1, 2, "1.0.0")
    [row] = drift_rows(batch, [Drift(DriftKind.TYPE_CHANGE, "a", "/a", "number", "string", 3)], now)
    assert row == {
        "topic_name": "events",
        "column_name": "a",
        "json_pointer": "/a",
        "kind": "TYPE_CHANGE",
        "old_value": "number",
        "new_value": "string",
        "batch_id": batch.batch_id,
        "records": 3,
        "detected_at": now,
    }
    assert list(row) == [column.name for column in OPS_TABLES["drift_log"].columns]
    assert type(row["kind"]) is str
    assert drift_rows(batch, [], now) == []


def test_the_kinds_held_grow_with_every_batch_and_only_for_columns() -> None:
    held = {"/a": seen(string=2), "/gone": seen(number=1)}
    places = {"/a": seen(string=1, number=4), "/no_room": seen(string=9)}
    [(key, value)] = kinds_property(held, places, columns(a="/a", b="/b")).items()
    assert key == "lean-ops.column-kinds"
    assert value == '{"/a": {"string": 3, "number": 4}}'
