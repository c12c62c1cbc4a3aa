"""What pyiceberg is spared does not change what it writes."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyiceberg.avro.decoder import StreamingBinaryDecoder
from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.avro.file import AvroFile, AvroOutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from lean_ops.lake.pyiceberg_savings import _once_for_the_same, save_work


def written(*numbers: int) -> bytes:
    save_work()
    stream = BytesIO()
    encoder = BinaryEncoder(stream)  # type: ignore[arg-type]  all it asks of a stream is `write`
    for number in numbers:
        encoder.write_int(number)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("number", "in_avro"),
    [(0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (64, "8001"), (8191, "fe7f"), (8192, "808001")],
)
def test_numbers_are_written_as_the_avro_specification_has_them(number: int, in_avro: str) -> None:
    assert written(number).hex() == in_avro


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
@example([2**63 - 1, -(2**63), 8191, 8192])
def test_every_number_is_read_back_as_it_was(numbers: list[int]) -> None:
    decoder = StreamingBinaryDecoder(written(*numbers))
    assert [decoder.read_int() for _ in numbers] == numbers


def test_what_is_made_of_the_very_same_objects_is_made_once_and_of_equal_ones_anew() -> None:
    asked: list[tuple[list[int], ...]] = []

    def pair(*lists: list[int]) -> list[int]:
        asked.append(lists)
        return [sum(each) for each in lists]

    known, one, other = _once_for_the_same(pair), [1], [1]
    assert known(one, other) is known(one, other)
    assert known(other, one) == [1, 1]
    assert [tuple(map(id, lists)) for lists in asked] == [(id(one), id(other)), (id(other), id(one))]


def test_an_object_that_is_gone_is_not_taken_for_a_new_one_in_its_place() -> None:
    known = _once_for_the_same(lambda numbers: numbers[0])
    assert [known([number]) for number in range(1000)] == list(range(1000))


SCHEMA = Schema(
    NestedField(1, "name", StringType(), required=True), NestedField(2, "size", LongType(), required=True), schema_id=0
)


def lines(folder: Path, name: str, wanted: Schema, *records: Record) -> list[Record]:
    """The records written to an Avro file and read back, as far as columns are wanted."""
    save_work()
    file = PyArrowFileIO().new_output(f"{folder}/{name}")
    with AvroOutputFile[Record](file, SCHEMA, name) as output:
        output.write_block(list(records))
    with AvroFile[Record](file.to_input_file(), wanted, {-1: Record}) as found:
        return list(found)


def test_files_of_one_schema_share_what_reads_them_and_nothing_of_what_is_read(tmp_path: Path) -> None:
    first = lines(tmp_path, "a", SCHEMA, Record("a", 1), Record("b", 2))
    second = lines(tmp_path, "b", SCHEMA, Record("c", 3))
    assert (first, second) == ([Record("a", 1), Record("b", 2)], [Record("c", 3)])


def test_who_wants_other_columns_of_the_same_schema_gets_them(tmp_path: Path) -> None:
    size = Schema(NestedField(2, "size", LongType(), required=True), schema_id=0)
    assert lines(tmp_path, "a", SCHEMA, Record("a", 1)) == [Record("a", 1)]
    assert lines(tmp_path, "b", size, Record("a", 1)) == [Record(1)]
