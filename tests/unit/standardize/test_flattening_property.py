"""For arbitrary JSON objects: every leaf is found again in exactly one column or in `_extra`, text unchanged."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.reference.leaves import MAX_DEPTH, Flattener
from tests.reference.payload import Number, compact_text, parse_payload

from lean_ops.standardize.naming import RESERVED_NAMES, assign_columns, pointer_step

NO_ENVELOPE = (None, None, None)

# Few short keys, so that collisions, conflicts and repetitions happen all the time.
keys = st.one_of(st.sampled_from(["a", "A", "b", "a_b", "a.b", "", "_file", "é", "/", "~"]), st.text(max_size=4))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.just({})
    | st.just([])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=10
)
payloads = st.dictionaries(keys, values, max_size=5)


def leaves(value: dict[str, Any], pointer: str = "", depth: int = 1) -> dict[str, str]:
    """The rules once more, written to be read: what a payload's leaves are."""
    found: dict[str, str] = {}
    for key, item in value.items():
        place = pointer + pointer_step(key)
        if isinstance(item, dict) and item and depth < MAX_DEPTH:
            found |= leaves(item, place, depth + 1)
        elif item is not None:
            is_text = isinstance(item, str)
            found[place] = str(item) if is_text else compact_text(item)
    return found


@given(st.lists(payloads, min_size=1, max_size=4), st.integers(0, 12))
def test_every_leaf_is_in_exactly_one_place(batch: list[dict[str, Any]], limit: int) -> None:
    parsed = [parse_payload(json.dumps(payload).encode()) for payload in batch]
    discovery = Flattener({})
    for payload in parsed:
        discovery.flatten(payload, NO_ENVELOPE)
    records = {pointer: sum(kinds.values()) for pointer, kinds in discovery.counts().items()}
    columns = assign_columns(records, (), (), limit).columns

    assert len(set(columns.values())) == len(columns) <= limit
    assert not RESERVED_NAMES & set(columns.values())
    flattener = Flattener(columns)
    pointer_of = {name: pointer for pointer, name in columns.items()}
    for payload in parsed:
        flat = flattener.flatten(payload, NO_ENVELOPE)
        in_columns = {pointer_of[name]: text for name, text in flat.texts.items()}
        assert not in_columns.keys() & flat.extra.keys()
        assert in_columns | flat.extra == leaves(payload)


@given(st.lists(payloads, min_size=1, max_size=5))
def test_counts_say_in_how_many_records_a_leaf_was_and_of_what_kind(batch: list[dict[str, Any]]) -> None:
    parsed = [parse_payload(json.dumps(payload).encode()) for payload in batch]
    flattener = Flattener({})
    for payload in parsed:
        flattener.flatten(payload, NO_ENVELOPE)
    expected: dict[str, int] = {}
    for payload in parsed:
        for pointer in leaves(payload):
            expected[pointer] = expected.get(pointer, 0) + 1
    assert {pointer: sum(kinds.values()) for pointer, kinds in flattener.counts().items()} == expected


@given(st.dictionaries(keys.map(lambda key: "/" + key.replace("~", "~0").replace("/", "~1")), st.integers(1, 3)))
def test_names_do_not_depend_on_the_order_in_which_leaves_were_found(records: dict[str, int]) -> None:
    forwards = assign_columns(records, (), (), 100)
    backwards = assign_columns(dict(reversed(records.items())), (), (), 100)
    assert forwards == backwards


def test_a_number_is_a_text_of_its_own_kind() -> None:
    parsed = parse_payload(b'{"a":1,"b":"1"}')
    assert [type(value) for value in parsed.values()] == [Number, str]
