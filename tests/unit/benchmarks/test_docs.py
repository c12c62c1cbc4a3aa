"""The page's marked places get a benchmark's numbers, and nothing else of the page changes."""

from __future__ import annotations

from benchmarks.docs import filled

PAGE = "before\n<!-- numbers: it -->\nold\n<!-- end -->\nbetween\n<!-- numbers: other -->\nkept\n<!-- end -->\n"
DOCUMENT = {
    "run": {"command": "lean-ops bench it --full", "seed": 1},
    "bars": [{"words": "a ratio", "value": 1.23456, "unit": "times", "limit_words": "at most 1 times", "met": False}],
    "tables": [{"title": "1,000 events", "columns": ["what", "n"], "rows": [["a|b", 1234567]]}],
    "notes": ["A note."],
}


def test_a_place_gets_the_command_the_bars_and_the_tables() -> None:
    page = filled(PAGE, {"it": DOCUMENT})
    assert "`lean-ops bench it --full` (seed 1)" in page
    assert "| a ratio | 1.235 times | at most 1 times | **no** |" in page
    assert "| a\\|b | 1,234,567 |" in page
    assert "old" not in page
    assert page.startswith("before\n")
    assert page.endswith("between\n<!-- numbers: other -->\nkept\n<!-- end -->\n")


def test_filling_twice_changes_nothing() -> None:
    once = filled(PAGE, {"it": DOCUMENT})
    assert filled(once, {"it": DOCUMENT}) == once
