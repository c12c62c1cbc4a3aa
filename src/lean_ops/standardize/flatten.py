"""Payload text to columns, as a DataFrame step that parses each payload once in a Python worker."""

from __future__ import annotations

import gc
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.model.tables import ENVELOPE_NAMES, EXTRA
from lean_ops.standardize.leaves import TAKEN_COLUMNS, Flattener, extra_text
from lean_ops.standardize.payload import Refusal, parse_payload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

ERROR_TYPE: Final = "_error_type"
ERROR_MESSAGE: Final = "_error_message"
REFUSED_PAYLOAD: Final = "_refused_payload"
CARRIED: Final = "_carried"
PLACES: Final = "_places"
_MARKS: Final = (EXTRA, ERROR_TYPE, ERROR_MESSAGE, PLACES, REFUSED_PAYLOAD)
# Refused payloads of an Arrow batch that travel to the driver with its counts; more than that take a job of their own.
_CARRIED_BYTES: Final = 64 * 1024
# A worker reports the places it saw once per Arrow batch; a batch with more different ones reports the most
# frequent, which can change the order in which names are given, never what is stored.
_PLACES_PER_REPORT: Final = 20_000

PlaceCounts = dict[str, Counter[str]]


@dataclass(frozen=True, slots=True)
class FlattenInArrow:
    """The worker's function: Arrow batches of RAW rows to Arrow batches of flat rows."""

    column_by_pointer: Mapping[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Each batch flattened; its first row carries what was seen in it."""
        flattener = Flattener(self.column_by_pointer)
        gc.disable()  # parsed payloads hold no cycles; looking for some costs as much as parsing
        try:
            for batch in batches:
                if batch.num_rows:
                    yield self._flatten(batch, flattener)
                    flattener.forget()
        finally:
            gc.enable()

    def _flatten(self, batch: pa.RecordBatch, flattener: Flattener) -> pa.RecordBatch:
        import pyarrow as pa

        payloads = batch.column("json_payload").cast(pa.binary()).to_pylist()
        envelopes = zip(*(batch.column(name).to_pylist() for name in TAKEN_COLUMNS), strict=True)
        texts: list[dict[str, str] | None] = []
        marks: list[tuple[str | None, str | None, str | None, bool]] = []
        room = _CARRIED_BYTES
        for payload, envelope in zip(payloads, envelopes, strict=True):
            parsed = parse_payload(payload)
            if isinstance(parsed, Refusal):
                room -= len(payload or b"") + len(parsed.message)
                texts.append(None)
                marks.append((None, parsed.error_type, parsed.message, room >= 0))
            else:
                flat = flattener.flatten(parsed, envelope)
                texts.append(flat.texts)
                marks.append((extra_text(flat.extra), None, None, False))
        return self._assemble(batch, texts, marks, _report(flattener))

    def _assemble(
        self,
        batch: pa.RecordBatch,
        texts: list[dict[str, str] | None],
        marks: list[tuple[str | None, str | None, str | None, bool]],
        report: str,
    ) -> pa.RecordBatch:
        import pyarrow as pa
        import pyarrow.compute as pc

        names = list(self.column_by_pointer.values())
        kind = pa.struct([pa.field(name, pa.string()) for name in names])
        columns = pa.array(texts, kind).flatten()
        places = [report] + [None] * (len(texts) - 1)
        *notes, carried = zip(*marks, strict=True)
        noted = [pa.array(values, pa.string()) for values in (*notes, places)]
        payload = batch.column("json_payload")
        refused = pc.if_else(pc.is_valid(noted[1]), payload, pa.scalar(None, payload.type))
        envelope = [batch.column(name) for name in ENVELOPE_NAMES]
        return pa.RecordBatch.from_arrays(
            [*envelope, *columns, *noted, refused, pa.array(carried, pa.bool_())],
            [*ENVELOPE_NAMES, *names, *_MARKS, CARRIED],
        )


def flatten(first: DataFrame, column_by_pointer: Mapping[str, str]) -> DataFrame:
    """First copies as flat rows: envelope, the given columns, `_extra`, the error with its payload, and reports."""
    from pyspark.sql.types import BooleanType, StringType, StructField, StructType

    rows = first.select(*ENVELOPE_NAMES, "json_payload")
    texts = [StructField(name, StringType()) for name in (*column_by_pointer.values(), *_MARKS)]
    schema = StructType([*(rows.schema[name] for name in ENVELOPE_NAMES), *texts, StructField(CARRIED, BooleanType())])
    return rows.mapInArrow(FlattenInArrow(dict(column_by_pointer)), schema)


def _report(flattener: Flattener) -> str:
    counts = flattener.counts()
    if len(counts) > _PLACES_PER_REPORT:
        most_frequent = sorted(counts, key=lambda pointer: (-sum(counts[pointer].values()), pointer))
        counts = {pointer: counts[pointer] for pointer in most_frequent[:_PLACES_PER_REPORT]}
    return json.dumps(counts)


def merge_reports(reports: Iterable[str]) -> PlaceCounts:
    """What all workers saw together: records by pointer and kind of value."""
    places: PlaceCounts = {}
    for report in reports:
        for pointer, kinds in json.loads(report).items():
            places.setdefault(pointer, Counter()).update(kinds)
    return places
