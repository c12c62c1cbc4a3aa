"""What Firehose does with records that it took: gathers, transforms, routes and delivers them.

What was taken is kept until it is delivered.
"""

from __future__ import annotations

import base64
import threading
import time
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tests.aws_local.faults import Faults

_TRANSFORM_BYTES: Final = 1024 * 1024


class Sink(Protocol):
    """Where a stream delivers."""

    def append(self, database: str, table: str, records: list[bytes]) -> None:
        """Bring records into a table; what is not as the table is goes to the error output."""

    def write_errors(self, code: str, message: str, records: list[bytes]) -> None:
        """Keep records that can't be delivered."""


@dataclass(kw_only=True)
class Delivery(ABC):
    """A buffer with a thread that delivers it when it is full or its time is over."""

    sink: Sink
    faults: Faults
    buffer_seconds: float = 8.0
    buffer_bytes: int = 4 * 1024 * 1024
    arn: str = "arn:aws:firehose:eu-central-1:000000000000:deliverystream/raw"
    broken: list[BaseException] = field(default_factory=list, init=False)
    _buffer: list[bytes] = field(default_factory=list, init=False)
    _undelivered: int = field(default=0, init=False)
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False)
    _is_closed: bool = field(default=False, init=False)

    @abstractmethod
    def call_transform(self, event: dict[str, Any]) -> Any:
        """What the transform answers to a call."""

    def begin(self) -> None:
        """Deliver from now on."""
        self._deliverer = threading.Thread(target=self._deliver_all, daemon=True)
        self._deliverer.start()

    def end(self) -> None:
        """Deliver nothing more; what is left in the buffer is lost."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._deliverer.join(60)

    @property
    def is_idle(self) -> bool:
        """Whether everything that was taken is delivered."""
        with self._changed:
            return not self._undelivered

    def take(self, records: list[bytes]) -> None:
        """Keep records until they are delivered."""
        with self._changed:
            self._buffer += records
            self._undelivered += len(records)
            self.faults.count("firehose: records taken", len(records))
            self._changed.notify_all()

    def _deliver_all(self) -> None:
        try:
            while not self._is_closed:
                records = self._next_buffer()
                self._deliver(records)
                with self._changed:
                    self._undelivered -= len(records)
        except BaseException as error:  # whoever owns the stream looks at it
            if not self._is_closed:
                self.broken.append(error)

    def _next_buffer(self) -> list[bytes]:
        """What gathered until the buffer was full or its time over."""
        deadline = time.monotonic() + self.buffer_seconds
        with self._changed:
            while not self._is_closed and sum(map(len, self._buffer)) < self.buffer_bytes:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            records, self._buffer = self._buffer, []
            return records

    def _deliver(self, records: list[bytes]) -> None:
        by_table: dict[tuple[str, str], list[bytes]] = {}
        for chunk in _cut(records, _TRANSFORM_BYTES):
            for data, answer in zip(chunk, self._transformed(chunk), strict=True):
                if answer["result"] == "Ok":
                    to = answer["metadata"]["otfMetadata"]
                    assert to["operation"] == "insert"
                    place = (to["destinationDatabaseName"], to["destinationTableName"])
                    by_table.setdefault(place, []).append(base64.b64decode(answer["data"], validate=True))
                else:
                    assert answer["result"] == "ProcessingFailed", answer["result"]
                    self.faults.count("firehose: processing failed")
                    self.sink.write_errors("Lambda.ProcessingFailedStatus", "the transform refused it", [data])
        for (database, table), rows in by_table.items():
            self.sink.append(database, table, rows)

    def _transformed(self, records: list[bytes]) -> list[dict[str, Any]]:
        """The transform's answers, in the records' order; nobody may be missing."""
        event = {
            "invocationId": str(uuid.uuid4()),
            "deliveryStreamArn": self.arn,
            "region": self.arn.split(":")[3],
            "records": [
                {
                    "recordId": str(number),
                    "approximateArrivalTimestamp": int(time.time() * 1000),
                    "data": base64.b64encode(record).decode(),
                }
                for number, record in enumerate(records)
            ],
        }
        answers = {answer["recordId"]: answer for answer in self.call_transform(event)["records"]}
        return [answers[str(number)] for number in range(len(records))]


def _cut(records: list[bytes], most_bytes: int) -> list[list[bytes]]:
    """Records in their order, in chunks of so many bytes; one alone may be larger."""
    chunks: list[list[bytes]] = []
    size = 0
    for record in records:
        if not chunks or size + len(record) > most_bytes:
            chunks.append([])
            size = 0
        chunks[-1].append(record)
        size += len(record)
    return chunks
