"""Each way to lose or change something is counted as what it is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from benchmarks.losses import ID, Expected, Losses

EXPECTED = Expected(
    pa.table({ID: ["a", "b", "c"], "useramount": ["1.10", "2", None], "type": ["x", "y", "z"]}),
    pa.array(["bad"], pa.string()),
)


def compared(**columns: list[Any]) -> Losses:
    return EXPECTED.compared_with(pa.table(columns))


def test_nothing_is_lost_of_an_exact_output_whatever_its_order_and_names() -> None:
    output = compared(
        message_id=["c", "a", "b"], user__Amount=[None, "1.10", "2"], type=["z", "x", "y"], more=[1, 2, 3]
    )
    assert output == Losses(0, 0, 0, 0, 0)


def test_a_number_with_another_text_is_a_changed_value() -> None:
    found = compared(message_id=["a", "b", "c"], user_amount=[1.1, 2.0, None], type=["x", "y", "z"])
    assert found == Losses(0, 0, 0, 0, 1)


def test_a_row_that_is_gone_is_no_lost_value() -> None:
    assert compared(message_id=["a", "b"], user_amount=["1.10", "2"], type=["x", "y"]) == Losses(1, 0, 0, 0, 0)


def test_a_missing_column_loses_its_values() -> None:
    assert compared(message_id=["a", "b", "c"], type=["x", "y", "z"]) == Losses(0, 0, 1, 2, 0)


def test_a_null_is_a_lost_value() -> None:
    found = compared(message_id=["a", "b", "c"], user_amount=["1.10", None, None], type=["x", "y", "z"])
    assert found == Losses(0, 0, 0, 1, 0)


def test_a_malformed_payload_with_a_row_was_taken_as_right() -> None:
    found = compared(message_id=["a", "b", "c", "bad"], user_amount=["1.10", "2", None, "9"], type=["x", "y", "z", "w"])
    assert found == Losses(0, 1, 0, 0, 0)
