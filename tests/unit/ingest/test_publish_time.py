"""RFC 3339 times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.ingest.publish_time import parse_publish_time

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("2026-02-03T10:15:30Z", "2026-02-03T10:15:30+00:00"),
        ("2026-02-03t10:15:30z", "2026-02-03T10:15:30+00:00"),
        ("2026-02-03 10:15:30", "2026-02-03T10:15:30+00:00"),
        ("2026-02-03T10:15:30.1Z", "2026-02-03T10:15:30.100000+00:00"),
        ("2026-02-03T10:15:30.1234569999Z", "2026-02-03T10:15:30.123456+00:00"),
        ("2026-02-03T10:15:30+05:30", "2026-02-03T04:45:30+00:00"),
        ("2026-02-03T10:15:30-00:00", "2026-02-03T10:15:30+00:00"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00+00:00"),
        ("2016-12-31T23:59:60.5Z", "2017-01-01T00:00:00.500000+00:00"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00+00:00"),
        ("1969-12-31T23:30:00-01:00", "1970-01-01T00:30:00+00:00"),
        ("2100-12-31T23:59:59.999999Z", "2100-12-31T23:59:59.999999+00:00"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00+00:00"),
    ],
)
def test_a_time_is_taken_exactly(text: str, same_as: str) -> None:
    assert parse_publish_time(text) == micros(datetime.fromisoformat(same_as))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-02-03",
        "2026-02-03T10:15Z",
        "2026-02-03T10:15:30.Z",
        "2026-02-03T10:15:30.592123,6Z",
        "2026-02-03T10:15:30.592123WZ",
        "2026-02-03T10:15:30.5+0Z",
        "2026-W05-2T10:15:30.5Z",
        "2026-02-03T10:15:30,5Z",
        "2026-02-03T10:15:30+0530",
        "2026-02-03T10:15:30+05",
        "2026-02-03T10:15:30+24:00",
        "2026-02-03T10:15:30+05:60",
        "2026-02-03T24:00:00Z",
        "2026-02-03T10:60:00Z",
        "2026-02-03T10:15:61Z",
        "2026-02-30T10:15:30Z",
        "2026-13-01T10:15:30Z",
        "0000-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01T00:30:00+01:00",
        "2101-01-01T00:00:00Z",
        "2100-12-31T23:59:60Z",
        "9999-12-31T23:59:60Z",
        "2026-W06-2T10:15:30Z",
        "20260203T101530Z",
        "2026-02-03T10:15:30Z ",
        "2026-02-03T10:15:30Z\n",
        "\uff12026-02-03T10:15:30Z",
        "+2026-02-03T10:15:30Z",
        "1770113730",
    ],
)
def test_anything_else_is_none(text: str) -> None:
    assert parse_publish_time(text) is None


@given(
    st.datetimes(
        datetime(1970, 1, 2),  # noqa: DTZ001  the zone is drawn below
        datetime(2100, 12, 30),  # noqa: DTZ001
        timezones=st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
    )
)
def test_it_agrees_with_datetime(moment: datetime) -> None:
    assert parse_publish_time(moment.isoformat()) == micros(moment)
