"""What pyiceberg is spared does not change what it writes."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyiceberg.avro.decoder import StreamingBinaryDecoder
from pyiceberg.avro.encoder import BinaryEncoder

from lean_ops.lake.pyiceberg_savings import save_work


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
