"""Time in proportion to size, whatever the shape: no input may hold up a batch."""

from __future__ import annotations

import gc
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.fuzz.files import archive, lines
from tests.fuzz.shapes import LINES, OBJECTS, PATHS, SCHEMAS, TEXTS, Shape, as_payload
from tests.reference.leaves import Flattener, extra_text
from tests.reference.payload import Refusal, parse_payload

from lean_ops.ingest.body import decide
from lean_ops.ingest.publish_time import parse_publish_time
from lean_ops.ingest.scan import JsonSyntaxError, members_of
from lean_ops.model.data_type import DataType, Kind, TimeFormat
from lean_ops.model.json_path import parse_json_path
from lean_ops.model.problem import SchemaError
from lean_ops.model.schema import parse_schema
from lean_ops.standardize.naming import assign_columns

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = 200_000
MOST_SECONDS = 3.0  # of a slow processor; far from linear at this size, and the growth tells of the rest
NOTABLE_SECONDS = 0.1  # below this a ratio says nothing
MOST_GROWTH = 9.0  # linear is 4


def seconds_of_both(work: Callable[[bytes], object], shape: Shape, size: int) -> list[tuple[float, float]]:
    """The processor time of a size and of a quarter of it, three times; side by side, for its speed changes."""
    gc.disable()
    try:
        return [(_seconds(work, shape(size)), max(1e-3, _seconds(work, shape(size // 4)))) for _ in range(3)]
    finally:
        gc.enable()


def _seconds(work: Callable[[bytes], object], data: bytes) -> float:
    start = time.process_time()
    work(data)
    return time.process_time() - start


def check(work: Callable[[bytes], object], shape: Shape, size: int = LARGE) -> None:
    large = _seconds(work, shape(size))
    if large > NOTABLE_SECONDS:
        both = seconds_of_both(work, shape, size)
        large = min(whole for whole, _ in both)
        assert large < MOST_SECONDS
        assert large < NOTABLE_SECONDS or min(whole / quarter for whole, quarter in both) < MOST_GROWTH


def body(data: bytes) -> None:
    decide(data, "events", 1, 10_000_000)


def body_with_text(data: bytes) -> None:
    text = json.dumps(data.decode("utf-8", "replace")).encode()
    body(as_payload(lambda _: text)(0))


def scanned(data: bytes) -> None:
    with suppress(JsonSyntaxError):
        sum(1 for _ in members_of(data.decode("utf-8", "replace")))


def flattened(data: bytes) -> None:
    value = parse_payload(data)
    if not isinstance(value, Refusal):
        flattener = Flattener({})
        extra_text(flattener.flatten(value, (None, None, None)).extra)
        assign_columns(dict.fromkeys(flattener.counts(), 1), (), (), 1000)


@pytest.mark.parametrize("shape", OBJECTS.values(), ids=OBJECTS)
def test_a_body_of_any_shape(shape: Shape) -> None:
    check(body, shape)
    check(body, as_payload(shape))
    check(body_with_text, shape)
    check(scanned, shape)


@pytest.mark.parametrize("shape", OBJECTS.values(), ids=OBJECTS)
def test_a_payload_of_any_shape(shape: Shape) -> None:
    check(flattened, shape, 2 * LARGE)


@pytest.mark.parametrize("shape", LINES.values(), ids=LINES)
def test_lines_and_dead_letters_of_any_shape(shape: Shape) -> None:
    check(lines, shape)
    check(archive, shape)


def schema(data: bytes) -> None:
    with suppress(SchemaError):
        parse_schema(data, "x")


@pytest.mark.parametrize("shape", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_file_of_any_shape(shape: Shape) -> None:
    check(schema, shape, LARGE // 4)


def value_of_every_type(data: bytes) -> None:
    text = data.decode()
    for data_type in (*(DataType(kind) for kind in Kind if kind is not Kind.DECIMAL), DataType(Kind.DECIMAL, 38, 9)):
        for time_format in TimeFormat:
            with suppress(ValueError):
                data_type.value_of(text, time_format)
    parse_publish_time(text)


@pytest.mark.parametrize("shape", TEXTS.values(), ids=TEXTS)
def test_a_value_s_text_of_any_shape(shape: Shape) -> None:
    check(value_of_every_type, shape)


def path(data: bytes) -> None:
    with suppress(ValueError):
        parse_json_path(data.decode())


@pytest.mark.parametrize("shape", PATHS.values(), ids=PATHS)
def test_a_json_path_of_any_shape(shape: Shape) -> None:
    check(path, shape)
