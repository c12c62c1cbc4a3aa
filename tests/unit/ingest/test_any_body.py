"""For any bytes at the door: one outcome that agrees with independent judges."""

from __future__ import annotations

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fuzz.strategies import inputs_of
from tests.fuzz.targets import archive, envelope, lines, publish_time, run, scanner

from lean_ops.ingest.body import decide
from lean_ops.model.envelope import RawRow

TIME = "2026-02-03T10:15:30Z"


@settings(max_examples=400)
@given(inputs_of("envelope"))
def test_a_body_has_one_outcome_and_a_row_holds_what_the_body_says(data: bytes) -> None:
    run(envelope.__name__, data)


@settings(max_examples=400)
@given(inputs_of("scanner"))
@example(b'{"a":"\\ud800","\\u0061":1}')
@example(b'{"a":1.}')
@example(b'{"a":1e}')
@example(b'{"a":-}')
@example(b'{"a":"\x7f\xc2\x80"}')
@example(b'{"a":\x0c1}')
def test_the_scanner_and_the_fast_parser_take_the_same_texts(data: bytes) -> None:
    run(scanner.__name__, data)


@settings(max_examples=300)
@given(inputs_of("publish_time"))
def test_a_publish_time_is_read_as_a_plain_reading_of_the_rules_has_it(data: bytes) -> None:
    run(publish_time.__name__, data)


@given(inputs_of("lines"))
def test_lines_come_out_as_they_are_cut_by_hand(data: bytes) -> None:
    run(lines.__name__, data)


@given(inputs_of("archive"))
def test_a_dead_letter_comes_back_byte_for_byte(data: bytes) -> None:
    run(archive.__name__, data)


NAMES = st.sampled_from(["payload", "message_id", "publish_time", "idempotency_key", "x"])
SPELLINGS = st.sampled_from([str, lambda name: "".join(f"\\u{ord(character):04x}" for character in name)])
VALUES = st.sampled_from(['"a"', '"b"', f'"{TIME}"', "1.10", "null", "{}", '{"idempotency_key":"k"}', '"\\u0061"'])
MEMBERS = st.tuples(NAMES, SPELLINGS, VALUES)


@settings(max_examples=300)
@given(st.lists(MEMBERS, min_size=3, max_size=8))
def test_of_double_members_the_last_wins_however_its_name_is_spelt(members: list[tuple[str, object, str]]) -> None:
    spelt = [f'"{spell(name)}":{value}' for name, spell, value in members]  # type: ignore[operator]
    plain = [f'"{name}":{value}' for name, value in {name: value for name, _, value in members}.items()]
    outcomes = [decide(f"{{{','.join(texts)}}}".encode(), "events", 1, 10_000) for texts in (spelt, plain)]
    assert outcomes[0] == outcomes[1]
    if isinstance(outcomes[0], RawRow):
        assert outcomes[0].message_id == json.loads(f"{{{','.join(spelt)}}}")["message_id"]
