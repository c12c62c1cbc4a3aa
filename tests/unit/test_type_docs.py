"""The page about types says what the table of spellings says."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from scripts.type_tables import RULES, held, page, shown
from tests.spellings import SPELLINGS

from lean_ops.model.data_type import Value

PAGE = Path(__file__).parents[2] / "docs" / "types.md"


def test_the_page_is_the_one_that_the_table_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(SPELLINGS), "run `make docs`"


def test_every_type_has_its_rule() -> None:
    assert list(RULES) == [spellings.title for spellings in SPELLINGS]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("12", "`12`"),
        ("\t12\n", r"`\t12\n`"),
        ("  a b  c ", "`␣␣a b␣␣c␣`"),
        ("\r\f\v", r"`\r\f\v`"),
        ("\u00a012\x00", r"`\u00a012\u0000`"),
        ("C:\\new", r"`C:\\new`"),
        ("a`b", "`` a`b ``"),
        ("9" * 5000, "`999999999999…999999999999` (5000 characters)"),
    ],
)
def test_invisible_characters_and_long_texts_can_be_read(text: str, cell: str) -> None:
    assert shown(text) == cell


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (" a", "`␣a`"),
        (12, "`12`"),
        (1.5, "`1.5`"),
        (Decimal("1.10"), "`1.10`"),
        (True, "`true`"),
        (date(2026, 2, 3), "`2026-02-03`"),
        (datetime(2026, 2, 3, 10, 15, 30, 120000, UTC), "`2026-02-03T10:15:30.120000Z`"),
    ],
)
def test_values_as_a_reader_sees_them(value: Value, cell: str) -> None:
    assert held(value) == cell


def test_a_pipe_does_not_end_its_cell() -> None:
    assert r"| `a\|b` | `a\|b` |  |" in page(SPELLINGS).splitlines()
