"""The flattening rules of the contract, case by case: payload texts in, columns and texts out."""

from __future__ import annotations

import hashlib
import json

import pytest
from tests.reference.leaves import Flattener, extra_text
from tests.reference.payload import Refusal, parse_payload

from lean_ops.standardize.columns import PayloadColumns
from lean_ops.standardize.naming import RESERVED_NAMES, Assignment, assign_columns, natural_name

NO_ENVELOPE = (None, None, None)


def flatten_all(
    payloads: list[str],
    *,
    has: dict[str, str] | None = None,
    declared: tuple[str, ...] = (),
    limit: int = 1000,
    envelope: tuple[str | None, ...] = NO_ENVELOPE,
) -> list[dict[str, str]]:
    """What the hop does with a batch: discover with the columns there are, name what is new, flatten."""
    parsed = [parse_payload(payload.encode()) for payload in payloads]
    assert not any(isinstance(value, Refusal) for value in parsed)
    known = dict(has or {})
    first = Flattener(known)
    for value in parsed:
        first.flatten(value, envelope)
    records = {pointer: sum(kinds.values()) for pointer, kinds in first.counts().items() if pointer not in known}
    known |= assign_columns(records, known.values(), declared, limit - len(known)).columns
    second = Flattener(known)
    flats = [second.flatten(value, envelope) for value in parsed]
    return [flat.texts | ({"_extra": extra_text(flat.extra)} if flat.extra else {}) for flat in flats]


def flatten_one(payload: str, **options: object) -> dict[str, str]:
    return flatten_all([payload], **options)[0]  # type: ignore[arg-type]


def suffixed(name: str, pointer: str, digits: int = 4) -> str:
    return f"{name}__{hashlib.sha256(pointer.encode()).hexdigest()[:digits]}"


LONG_KEY = "k" * 250

ONE_PAYLOAD_CASES = {
    "a leaf is its path joined by _": ('{"event":{"userId":"u-7"}}', {"event_userid": "u-7"}),
    "names are lower case": ('{"EventType":"Login"}', {"eventtype": "Login"}),
    "other characters become _": (
        '{"ip-address":"x","a b":"y","ünï":"z"}',
        {"ip_address": "x", "a_b": "y", "_n_": "z"},
    ),
    "an astral character is one _": ('{"a😀b":"x"}', {"a_b": "x"}),
    "an empty key is _": ('{"":"x"}', {"_": "x"}),
    "an empty key inside": ('{"a":{"":"x"}}', {"a__": "x"}),
    "digits may lead": ('{"1st":"x"}', {"1st": "x"}),
    "a long name is cut": (
        json.dumps({LONG_KEY: "x"}),
        {"k" * 190 + "__" + hashlib.sha256(f"/{LONG_KEY}".encode()).hexdigest()[:8]: "x"},
    ),
    "a name of 200 stays whole": (json.dumps({"n" * 200: "x"}), {"n" * 200: "x"}),
    "quotes, backticks and SQL in keys": (
        '{"a\\"b":"1","a`b`c":"2","x\'; DROP TABLE t; --":"3"}',
        {"a_b": "1", "a_b_c": "2", "x___drop_table_t____": "3"},
    ),
    "slash and tilde in keys": ('{"a/b":"1","c~d":"2"}', {"a_b": "1", "c_d": "2"}),
    "a newline in a key": ('{"a\\nb":"1"}', {"a_b": "1"}),
    "depth 5 scalar": ('{"a":{"b":{"c":{"d":{"e":1}}}}}', {"a_b_c_d_e": "1"}),
    "depth 5 object is text": ('{"a":{"b":{"c":{"d":{"e":{"f": 1.0}}}}}}', {"a_b_c_d_e": '{"f":1.0}'}),
    "arrays are text": ('{"a":[1, {"b" : 2.50}, "x"]}', {"a": '[1,{"b":2.50},"x"]'}),
    "empty array": ('{"a":[ ]}', {"a": "[]"}),
    "empty object": ('{"a":{ }}', {"a": "{}"}),
    "empty object at depth 5": ('{"a":{"b":{"c":{"d":{"e":{}}}}}}', {"a_b_c_d_e": "{}"}),
    "the empty payload has no leaves": ("{}", {}),
    "key order in text is kept": ('{"a":[{"z":1,"y":2}]}', {"a": '[{"z":1,"y":2}]'}),
    "unicode in text is kept": ('{"a":["é","\\u00e9","\\n","\\"","\\\\"]}', {"a": '["é","é","\\n","\\"","\\\\"]'}),
    "decimal text": ('{"a":1.10}', {"a": "1.10"}),
    "exponent text": ('{"a":1e5,"b":1E+5,"c":-1.5e-10}', {"a": "1e5", "b": "1E+5", "c": "-1.5e-10"}),
    "big integer": ('{"a":12345678901234567890}', {"a": "12345678901234567890"}),
    "4300 digits": ('{"a":' + "9" * 4300 + "}", {"a": "9" * 4300}),
    "minus zero": ('{"a":-0,"b":-0.0,"c":[-0]}', {"a": "-0", "b": "-0.0", "c": "[-0]"}),
    "huge exponent": ('{"a":1e400}', {"a": "1e400"}),
    "booleans": ('{"a":true,"b":false}', {"a": "true", "b": "false"}),
    "null is missing": ('{"a":null,"b":{"c":null}}', {}),
    "null inside an array stays": ('{"a":[null]}', {"a": "[null]"}),
    "empty string stays": ('{"a":""}', {"a": ""}),
    "blanks in a string stay": ('{"a":"  x "}', {"a": "  x "}),
    "a string that looks like a number": ('{"a":"1.10"}', {"a": "1.10"}),
    "a string of JSON text": ('{"a":"{\\"b\\":1}"}', {"a": '{"b":1}'}),
    "NUL character": ('{"a":"\\u0000"}', {"a": "\0"}),
    "emoji by escapes": ('{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
    "of duplicate keys the last wins": ('{"a":1,"a":2}', {"a": "2"}),
    "of duplicate keys the last wins, whatever its shape": ('{"a":{"b":1},"a":"x"}', {"a": "x"}),
    "duplicate keys inside text": ('{"a":[{"b":1,"b":2}]}', {"a": '[{"b":2}]'}),
    "an object and a leaf of the same start": ('{"a":{"b":1},"ab":2}', {"a_b": "1", "ab": "2"}),
    "an envelope name is not taken": ('{"message_id":"x"}', {suffixed("message_id", "/message_id"): "x"}),
    "an audit name is not taken": (
        '{"_batch_id":"x","_extra":"y"}',
        {suffixed("_batch_id", "/_batch_id"): "x", suffixed("_extra", "/_extra"): "y"},
    ),
    "metadata leaves without an envelope value": (
        '{"_metadata":{"periodReference":"2026-02","other":1}}',
        {"_metadata_periodreference": "2026-02", "_metadata_other": "1"},
    ),
}


@pytest.mark.parametrize(("payload", "expected"), ONE_PAYLOAD_CASES.values(), ids=ONE_PAYLOAD_CASES)
def test_one_payload(payload: str, expected: dict[str, str]) -> None:
    assert flatten_one(payload) == expected


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_no_leaf_takes_the_name_of_a_column_that_is_not_the_payloads(name: str) -> None:
    assert flatten_one(json.dumps({name: "x"})) == {suffixed(name, f"/{name}"): "x"}


def test_upper_case_spellings_of_reserved_names_are_refused_too() -> None:
    assert flatten_one('{"_FILE":"x"}') == {suffixed("_file", "/_FILE"): "x"}


def test_a_case_collision_keeps_both_and_the_more_frequent_has_the_name() -> None:
    rows = flatten_all(['{"userId":1,"userid":2}', '{"userid":3}'])
    assert rows == [{"userid": "2", suffixed("userid", "/userId"): "1"}, {"userid": "3"}]


def test_a_dot_collision_keeps_both_and_an_equal_count_is_decided_by_pointer() -> None:
    rows = flatten_all(['{"a":{"b":1},"a.b":2,"a_b":3}'])
    assert rows == [{"a_b": "2", suffixed("a_b", "/a/b"): "1", suffixed("a_b", "/a_b"): "3"}]


def test_a_declared_leaf_comes_before_a_frequent_one() -> None:
    rows = flatten_all(['{"userId":1,"userid":2}', '{"userid":3}'], declared=("/userId",))
    assert rows[0]["userid"] == "1"


def test_whoever_has_the_name_keeps_it() -> None:
    rows = flatten_all(['{"userId":1,"userid":2}', '{"userid":3}'], has={"/userId": "userid"})
    assert rows == [{"userid": "1", suffixed("userid", "/userid"): "2"}, {suffixed("userid", "/userid"): "3"}]


def test_an_object_and_a_scalar_at_one_place_have_columns_of_their_own() -> None:
    assert flatten_all(['{"a":{"b":1}}', '{"a":"x"}', '{"a":[]}']) == [{"a_b": "1"}, {"a": "x"}, {"a": "[]"}]


def test_a_clash_of_the_suffixed_name_gets_more_digits() -> None:
    taken = {"a": "/other", suffixed("a", "/A"): "/x", suffixed("a", "/A", 5): "/y"}
    assigned = assign_columns({"/A": 1}, taken, (), 10)
    assert assigned == Assignment({"/A": suffixed("a", "/A", 6)}, ())


def test_leaves_past_the_column_limit_go_to_extra_with_their_text() -> None:
    payloads = [json.dumps({f"k{number:04}": number for number in range(1003)})]
    row = flatten_all(payloads)[0]
    assert len(row) == 1001
    assert json.loads(row["_extra"]) == {"/k1000": "1000", "/k1001": "1001", "/k1002": "1002"}


def test_the_limit_counts_the_columns_the_table_has() -> None:
    rows = flatten_all(['{"a":1,"b":2,"c":3}'], has={"/z": "z"}, limit=2)
    assert rows == [{"a": "1", "_extra": '{"/b":"2","/c":"3"}'}]


def test_extra_uses_pointers_so_nothing_is_mixed() -> None:
    rows = flatten_all(['{"a":{"b":1.0},"a/b":[1, 2],"a~":"é"}'], limit=0)
    assert json.loads(rows[0]["_extra"]) == {"/a/b": "1.0", "/a~1b": "[1,2]", "/a~0": "é"}


def test_a_metadata_leaf_is_left_out_only_if_the_envelope_took_its_value() -> None:
    payload = (
        '{"_metadata":{"idempotencyKeyResource":"k-1","idempotency_key":"k-1","periodReference":"p",'
        '"correlationId":"c-9"}}'
    )
    row = flatten_one(payload, envelope=("k-1", "p", "another"))
    assert row == {"_metadata_idempotency_key": "k-1", "_metadata_correlationid": "c-9"}


def test_a_numeric_metadata_key_is_compared_as_text() -> None:
    assert flatten_one('{"_metadata":{"idempotencyKeyResource":42}}', envelope=("42", None, None)) == {}


def test_top_level_keys_that_the_envelope_took_stay_as_leaves() -> None:
    row = flatten_one('{"idempotencyKeyResource":"k"}', envelope=("k", None, None))
    assert row == {"idempotencykeyresource": "k"}


def test_natural_names_of_different_long_paths_differ() -> None:
    one, other = (natural_name("/" + "x" * 300 + ending) for ending in "ab")
    assert (len(one), len(other)) == (200, 200)
    assert one != other


def test_columns_without_a_pointer_are_never_taken() -> None:
    columns = PayloadColumns({"/a": "a"}, frozenset({"a", "by_hand"}))
    assigned = assign_columns({"/by_hand": 5}, columns.all_names, (), 10)
    assert assigned.columns == {"/by_hand": suffixed("by_hand", "/by_hand")}
