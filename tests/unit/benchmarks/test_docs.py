"""The page's marked places get the benchmarks' numbers and plots, and nothing else of the page changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.docs import KEPT, documents_in, filled, keep

PAGE = (
    "before\n<!-- bars -->\nold\n<!-- end -->\n<!-- machine -->\nold\n<!-- end -->\n"
    "<!-- numbers: growth -->\nold\n<!-- end -->\nbetween\n<!-- numbers: ingest -->\nkept\n<!-- end -->\n"
)
DOCUMENT: dict[str, Any] = {
    "question": "how much?",
    "run": {"command": "lean-ops bench growth --full", "seed": 1},
    "machine": {"cores": 2, "memory_gib": 24.0, "system": "Linux"},
    "versions": {"python": "3.11.7"},
    "bars": [
        {"words": "a ratio", "value": 1.23456, "unit": "times", "limit_words": "at most 1 times", "met": False},
        {"words": "rate", "value": 81_360.4, "unit": "bodies/s", "limit_words": "at least 60000", "met": True},
    ],
    "tables": [{"title": "1,000 events", "columns": ["what", "n"], "rows": [["a|b", 1234567]]}],
    "notes": ["A note."],
}
CRASHED = {"question": "?", "run": DOCUMENT["run"], "machine": DOCUMENT["machine"], "crashed": "at x\nKeyError: 'x'"}
DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_a_place_gets_the_command_the_bars_the_tables_and_the_plot() -> None:
    page = filled(PAGE, {"growth": DOCUMENT})
    assert "`lean-ops bench growth --full` (seed 1)" in page
    assert "| a ratio | 1.235 times | at most 1 times | **no** |" in page
    assert "| rate | 81,360 bodies/s | at least 60000 | yes |" in page
    assert "| a\\|b | 1,234,567 |" in page
    assert f"![how much?]({KEPT}/growth.svg)" in page
    assert "old" not in page
    assert page.startswith("before\n")
    assert page.endswith("between\n<!-- numbers: ingest -->\nkept\n<!-- end -->\n")


def test_every_bar_of_every_benchmark_is_in_one_table_and_every_machine_is_told() -> None:
    other = {**DOCUMENT, "machine": {**DOCUMENT["machine"], "cores": 4}}
    page = filled(PAGE, {"growth": DOCUMENT, "ingest": DOCUMENT, "memory": other, "idle": CRASHED})
    assert page.count("| growth | a ratio | 1.235 times |") == 1
    assert page.count("| memory | rate | 81,360 bodies/s |") == 1
    assert [line for line in page.splitlines() if line.endswith("python 3.11.7.")] == [
        "2 cores, 24.0 GiB, Linux; python 3.11.7.",
        "4 cores, 24.0 GiB, Linux; python 3.11.7.",
    ]


def test_a_crash_is_told_in_its_place() -> None:
    assert "It crashed: `KeyError: 'x'`" in filled(PAGE, {"growth": CRASHED})


def test_without_documents_a_page_stays_as_it_is() -> None:
    assert filled(PAGE, {}) == PAGE


def test_filling_twice_changes_nothing() -> None:
    once = filled(PAGE, {"growth": DOCUMENT})
    assert filled(once, {"growth": DOCUMENT}) == once


def test_results_are_kept_in_the_order_of_the_suite_and_what_still_runs_is_left_out(tmp_path: Path) -> None:
    results, kept = tmp_path / "results", tmp_path / "kept"
    results.mkdir()
    for name, document in (("ingest", DOCUMENT), ("growth", DOCUMENT), ("idle", {"name": "idle", "out": "x"})):
        (results / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
        (results / f"{name}.svg").write_text("<svg/>", encoding="utf-8")
    keep(results, kept)
    assert sorted(file.name for file in kept.iterdir()) == ["growth.json", "growth.svg", "ingest.json", "ingest.svg"]
    assert list(documents_in(kept)) == ["growth", "ingest"]


def test_the_page_of_this_repository_says_what_the_kept_documents_say() -> None:
    page, documents = (DOCS / "performance.md").read_text(encoding="utf-8"), documents_in(DOCS / KEPT)
    assert documents
    assert filled(page, documents) == page
