"""Rows of single data files, read where a scan of the whole table would cost more than they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyiceberg.io import FileIO


def read_columns(io: FileIO, path: str, names: Sequence[str]) -> pa.Table:
    """Some columns of a data file, each once."""
    import pyarrow.parquet as pq

    with io.new_input(path).open() as file:  # pq.read_table would make a dataset of it, which takes twice the time
        return pq.ParquetFile(file).read(columns=list(names), use_threads=False)
