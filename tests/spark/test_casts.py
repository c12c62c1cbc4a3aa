"""The job's casts give what the reference gives: for every spelling of the table, and for texts nobody thought of."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame
from tests.spellings import SPELLINGS

from lean_ops.curate.judge import new_judge
from lean_ops.lake.kernel import applied
from lean_ops.model.data_type import STRING, DataType, Kind, TimeFormat
from lean_ops.model.schema import parse_schema
from lean_ops.model.tables import ENVELOPE_NAMES
from lean_ops.wiring import Services

pytestmark = pytest.mark.spark

TYPES = [(spellings.type, spellings.time_format) for spellings in SPELLINGS]
MORE_TYPES = [
    (DataType(Kind.DECIMAL, 38, 0), TimeFormat.ISO),
    (DataType(Kind.DECIMAL, 38, 38), TimeFormat.ISO),
    (DataType(Kind.DECIMAL, 1, 0), TimeFormat.ISO),
    (DataType(Kind.DECIMAL, 5, 5), TimeFormat.ISO),
]
_LENGTHS = [1, 2, 5, 9, 10, 16, 17, 18, 19, 38, 60]
_YEARS = [0, 1, 99, 1582, 1969, 1970, 2000, 2023, 2024, 2026, 9999]
_TIME_ZONES = [
    "",
    "Z",
    "z",
    "+00:00",
    "-00:00",
    "+05:30",
    "-0800",
    "+14",
    "+18:00",
    "+18:01",
    "-18:00",
    "+19:00",
    " UTC",
]
_WORDS = ["true", "FALSE", "t", "N", "yes", "on", "null", "NaN", "Infinity", "0x10", "1d", "", " "]
_ODD = [" ", "\t", "\n", "\u2028", "\u0661", "\u00a0", ",", "_", "'", "-", ".", "e", "0", "Z", "\x00", "\x0b"]
_ENVELOPE = (
    *(f"'{name}' AS {name}" for name in ENVELOPE_NAMES[:5]),
    "timestamp_micros(0L) AS publish_time",
    "0L AS ingestion_ts",
)
_SPARK_TYPES = {Kind.INT: "int", Kind.BIGINT: "bigint", Kind.TIMESTAMP: "timestamp"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def judged(services: Services, texts: list[str], kind: DataType, time_format: TimeFormat) -> DataFrame:
    """Each text's place, and as `judged` what the judge makes of a row with this text alone."""
    column = {"type": str(kind)} | ({"format": time_format} if kind.kind is Kind.TIMESTAMP else {})
    schema = {
        "schema_version": "1.0.0",
        "table_name": "t",
        "envelope_columns": {},
        "payload_columns": {"value": column},
    }
    spark = services.sessions.mine()
    frame = spark.createDataFrame(list(enumerate(texts)), "place int, text string")
    frame = frame.selectExpr("*", *_ENVELOPE)
    judge = new_judge(spark, parse_schema(json.dumps(schema), "a test"), None, None)
    return applied(frame, judge, [*ENVELOPE_NAMES, "text"], "judged")


def cast_by_spark(services: Services, texts: list[str], kind: DataType, time_format: TimeFormat) -> list[Any]:
    """Each text's value by the job; times as microseconds, which no time zone of this machine can bend."""
    value = "unix_micros(judged.value)" if kind.kind is Kind.TIMESTAMP else "judged.value"
    frame = judged(services, texts, kind, time_format).selectExpr("place", f"{value} AS value")
    rows = frame.sort("place").collect()
    return [_moment(row.value) if kind.kind is Kind.TIMESTAMP else row.value for row in rows]


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


def by_reference(text: str, kind: DataType, time_format: TimeFormat) -> Any:
    try:
        return kind.value_of(text, time_format)
    except ValueError:
        return None


@pytest.mark.parametrize("spellings", SPELLINGS, ids=lambda spellings: spellings.title)
def test_every_spelling_is_cast_as_the_table_says(services: Services, spellings: Any) -> None:
    texts = [one.text for one in (*spellings.accepted, *spellings.refused)]
    expected = [one.value for one in spellings.accepted] + [None] * len(spellings.refused)
    found = cast_by_spark(services, texts, spellings.type, spellings.time_format)
    assert dict(zip(texts, found, strict=True)) == dict(zip(texts, expected, strict=True))


def any_texts(seed: int, count: int) -> list[str]:
    """Texts that look like values of some type, and such texts with something wrong in them."""
    chosen = random.Random(seed)  # noqa: S311  the same texts every time
    return [
        _spoilt(chosen, _value_like(chosen)) if chosen.random() < 0.4 else _value_like(chosen) for _ in range(count)
    ]


def _value_like(chosen: random.Random) -> str:
    """A number, a date, a time or a word; the numbers and parts of times lie around the limits of their types."""
    pick = chosen.choice
    digits = "".join(chosen.choices("0123456789", [6, 3, 1, 1, 1, 1, 1, 1, 1, 3], k=pick(_LENGTHS)))
    fraction = "".join(chosen.choices("0123456789", [4, 1, 1, 1, 1, 1, 1, 1, 1, 2], k=pick([0, 1, 2, 3, 6, 7, 9, 20])))
    number = pick(["", "-", "+"]) + digits + pick(["", f".{fraction}"])
    number += f"{pick('eE')}{pick(['', '+', '-'])}{pick([0, 1, 2, 5, 17, 18, 19, 300, 400])}" if pick([0, 0, 1]) else ""
    day = f"{pick(_YEARS):04d}-{pick([0, 1, 2, 12, 13]):02d}-{pick([0, 1, 28, 29, 30, 31, 32]):02d}"
    seconds = f":{pick([0, 30, 59, 60]):02d}" + pick(["", f".{fraction}"])
    clock = f"{pick([0, 9, 23, 24]):02d}:{pick([0, 59, 60]):02d}{pick(['', seconds, seconds])}"
    return pick([number, number, number, day, f"{day}{pick('Tt ')}{clock}{pick(_TIME_ZONES)}", pick(_WORDS)])


def _spoilt(chosen: random.Random, text: str) -> str:
    place, odd = chosen.randrange(len(text) + 1), chosen.choice(_ODD)
    return chosen.choice([text[:place] + odd + text[place:], text[:place] + text[place + 1 :], odd + text, text + odd])


@pytest.mark.parametrize(("kind", "time_format"), TYPES + MORE_TYPES, ids=str)
def test_any_text_is_cast_as_the_reference_casts_it(
    services: Services, kind: DataType, time_format: TimeFormat
) -> None:
    texts = [text for text in any_texts(7, 4000) if text.strip(" \t\n\r\f\v")]
    expected = [by_reference(text, kind, time_format) for text in texts]
    found = cast_by_spark(services, texts, kind, time_format)
    assert [case for case in zip(texts, found, expected, strict=True) if case[1] != case[2]] == []
    assert len([value for value in found if value is not None]) > 20


def test_a_value_has_exactly_its_declared_type(services: Services) -> None:
    for kind, time_format in TYPES + MORE_TYPES:
        schema = judged(services, ["1"], kind, time_format).select("judged.value").schema
        assert schema["value"].dataType.simpleString() == _SPARK_TYPES.get(kind.kind, str(kind).lower())


def test_decimals_keep_every_digit_that_fits(services: Services) -> None:
    text = "12345678901234567890.123456789012345678"
    assert cast_by_spark(services, [text], DataType(Kind.DECIMAL, 38, 18), TimeFormat.ISO) == [Decimal(text)]


def test_only_blanks_are_blank(services: Services) -> None:
    texts = ["", " ", "\t\n\r\f\v ", "a", " a ", "\u00a0", "\u2003", "0", "\x00"]
    kept = cast_by_spark(services, texts, STRING, TimeFormat.ISO)
    assert kept == [None, None, None, "a", " a ", "\u00a0", "\u2003", "0", "\x00"]
