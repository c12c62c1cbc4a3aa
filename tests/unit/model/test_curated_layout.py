"""How many buckets a Curated table has as it grows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.model.curated_layout import CURATED_RULE, LayoutRule, by_key, layout_in_words, layout_properties

RULE = LayoutRule(first_rows=100, rows_per_bucket=50, fewest=4, most=100)
ROWS = st.integers(0, 10**12)
RULES = st.builds(
    LayoutRule,
    first_rows=st.integers(1, 10**9),
    rows_per_bucket=st.integers(1, 10**9),
    fewest=st.integers(1, 16),
    most=st.integers(16, 4096),
)


@pytest.mark.parametrize(
    ("rows", "buckets"), [(0, 0), (99, 0), (100, 4), (200, 4), (201, 16), (800, 16), (801, 64), (10**9, 64)]
)
def test_a_table_has_no_partitions_while_it_is_small_and_then_enough_buckets(rows: int, buckets: int) -> None:
    assert RULE.buckets(rows) == buckets


@given(RULES, ROWS, ROWS)
def test_more_rows_never_want_fewer_buckets(rule: LayoutRule, one: int, other: int) -> None:
    fewer, more = sorted((one, other))
    assert rule.buckets(fewer) <= rule.buckets(more)


@given(RULES, ROWS)
def test_the_buckets_are_bounded_and_one_of_the_steps(rule: LayoutRule, rows: int) -> None:
    assert rule.buckets(rows) in {0, *rule.steps}
    assert rule.buckets(rows) <= rule.most


@given(RULES, ROWS)
def test_a_bucket_is_not_too_full_as_long_as_there_may_be_more_of_them(rule: LayoutRule, rows: int) -> None:
    buckets = rule.buckets(rows)
    assert buckets in {0, rule.steps[-1]} or rows <= buckets * rule.rows_per_bucket


@given(RULES, ROWS, st.integers(0, 4096))
def test_a_table_is_only_ever_moved_to_more_buckets_and_then_stays(rule: LayoutRule, rows: int, present: int) -> None:
    layout = rule.next_layout(rows, present)
    assert layout is None or layout > present
    assert rule.next_layout(rows, layout or present) is None


@given(RULES, st.lists(ROWS, max_size=30))
def test_a_table_is_moved_a_few_times_in_its_life(rule: LayoutRule, sizes: list[int]) -> None:
    present, moves = 0, 0
    for rows in sorted(sizes):
        layout = rule.next_layout(rows, present)
        present, moves = layout or present, moves + (layout is not None)
    assert moves <= len(rule.steps)


def test_the_rule_that_holds_is_one_that_iceberg_and_the_setting_can_follow() -> None:
    assert CURATED_RULE.buckets(CURATED_RULE.first_rows - 1) == 0
    assert all(1 <= step <= CURATED_RULE.most for step in CURATED_RULE.steps)


def test_a_layout_is_told_as_a_schema_would_write_it() -> None:
    assert [field.name for field in by_key(16)] == ["idempotency_key_bucket_16"]
    assert by_key(0) == ()
    assert (layout_in_words(16), layout_in_words(0)) == ("bucket(16, idempotency_key)", "no partitions")


@pytest.mark.parametrize(("rows", "deletes"), [(0, "partition"), (199_999, "partition"), (200_000, "file")])
def test_only_a_table_that_every_merge_reads_whole_has_its_deletes_together(rows: int, deletes: str) -> None:
    assert layout_properties(rows)["write.delete.granularity"] == deletes


def test_all_files_of_a_table_that_every_merge_reads_whole_are_one_task() -> None:
    most_files = 200_000 // 2_500 + 20
    cost = {rows: int(layout_properties(rows)["read.split.open-file-cost"]) for rows in (199_999, 200_000)}
    assert cost[199_999] * most_files * 2 < 16 * 1024 * 1024  # Iceberg's smallest split; each with a delete file
    assert cost[200_000] == 4 * 1024 * 1024


RULE_OF_FILES = LayoutRule(first_rows=1_000_000, rows_per_bucket=1, fewest=2, most=8, few_files=10)


def fewest_files(table: str, rows: int) -> int | None:
    return next((files for files in range(200) if RULE_OF_FILES.has_many_files(table, rows, files)), None)


def test_a_small_table_has_too_many_files_from_a_number_on_that_differs_from_table_to_table() -> None:
    found = {fewest_files(f"curated.topic_{number}", 100) for number in range(200)}
    assert found == set(range(11, 19))
    assert fewest_files("curated.a", 100) == fewest_files("curated.a", 200)


def test_the_more_rows_a_table_has_the_more_files_it_may_have_and_a_large_one_any_number() -> None:
    small, middle = fewest_files("curated.a", 0), fewest_files("curated.a", 100_000)
    assert small is not None
    assert middle == small + 40
    assert fewest_files("curated.a", 200_000) is None
