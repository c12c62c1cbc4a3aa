from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.model.partitioning import PartitionField, Transform, parse_partition


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("country", PartitionField(Transform.IDENTITY, "country")),
        (" country ", PartitionField(Transform.IDENTITY, "country")),
        ("day", PartitionField(Transform.IDENTITY, "day")),
        ("bucket(16, idempotency_key)", PartitionField(Transform.BUCKET, "idempotency_key", 16)),
        ("bucket(1,x)", PartitionField(Transform.BUCKET, "x", 1)),
        (" bucket ( 4096 , x ) ", PartitionField(Transform.BUCKET, "x", 4096)),
        ("truncate(4, x)", PartitionField(Transform.TRUNCATE, "x", 4)),
        ("truncate(2147483647, x)", PartitionField(Transform.TRUNCATE, "x", 2147483647)),
        ("year(t)", PartitionField(Transform.YEAR, "t")),
        ("month(t)", PartitionField(Transform.MONTH, "t")),
        ("day(t)", PartitionField(Transform.DAY, "t")),
        ("day(day)", PartitionField(Transform.DAY, "day")),
        ("hour(t)", PartitionField(Transform.HOUR, "t")),
    ],
)
def test_a_field(text: str, field: PartitionField) -> None:
    assert parse_partition(text) == field


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a b",
        "a.b",
        "9a",
        "()",
        "day()",
        "day(t",
        "day(t))",
        "day(1)",
        "day(1, t)",
        "days(t)",
        "DAY(t)",
        "identity(x)",
        "void(x)",
        "bucket(x)",
        "bucket(x, 16)",
        "bucket(0, x)",
        "bucket(4097, x)",
        "bucket(-1, x)",
        "bucket(1.5, x)",
        "bucket(16, x, y)",
        "bucket(16 x)",
        "bucket(\u0661, x)",
        "truncate(0, x)",
        "truncate(2147483648, x)",
        "truncate(99999999999, x)",
        "day(day(t))",
        "day(t); DROP TABLE x",
        "day(t)\n",
    ],
)
def test_what_is_no_field_is_told_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match=r"^column, bucket\(N, column\) with 1 <= N <= 4096, .* or hour\(column\)$"):
        parse_partition(text)


_names = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
_fields = st.one_of(
    st.builds(PartitionField, st.just(Transform.BUCKET), _names, st.integers(1, 4096)),
    st.builds(PartitionField, st.just(Transform.TRUNCATE), _names, st.integers(1, 2**31 - 1)),
    st.builds(PartitionField, st.sampled_from(sorted(set(Transform) - {Transform.BUCKET, Transform.TRUNCATE})), _names),
)


@given(_fields)
def test_a_field_s_text_stands_for_it(field: PartitionField) -> None:
    assert parse_partition(str(field)) == field


@given(st.text() | st.text("bucketday(), 0123456789x_", max_size=30))
def test_any_text_is_a_field_or_a_value_error(text: str) -> None:
    try:
        field = parse_partition(text)
    except ValueError:
        return
    assert parse_partition(str(field)) == field


@pytest.mark.parametrize(
    ("text", "name"),
    [("x", "x"), ("day(x)", "x_day"), ("bucket(16, x)", "x_bucket_16"), ("truncate(2, x)", "x_truncate_2")],
)
def test_a_field_s_name_in_the_table(text: str, name: str) -> None:
    assert parse_partition(text).name == name
