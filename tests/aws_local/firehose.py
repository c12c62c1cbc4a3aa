"""A Firehose stream as an HTTP server: takes PutRecordBatch and refuses a share, then transforms and delivers.

What it took it keeps until it is delivered. It speaks what boto3 sends for PutRecordBatch and nothing else.
"""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol, Self

from tests.aws_local.faults import Faults
from tests.aws_local.function import DIES_AFTER, DIES_BEFORE, KILLED, RAISES, Function, FunctionError
from tests.servers.process import HOST

MOST_RECORDS: Final = 500
MOST_BYTES: Final = 4_000_000
MOST_RECORD_BYTES: Final = 1_024_000
_TRANSFORM_BYTES: Final = 1024 * 1024
# Firehose tries a transform three times more before it gives up on the records; faults leave the last ones alone.
_TRANSFORM_TRIES: Final = 6
_FAULTY_TRIES: Final = 2

REFUSES: Final = "firehose refuses a record"
THROTTLES: Final = "firehose throttles a call"
FAILS: Final = "firehose fails after it took records"
BREAKS_OFF: Final = "firehose breaks off after it took records"
CALL_FAULTS: Final = (THROTTLES, FAILS, BREAKS_OFF)
TRANSFORM_FAULTS: Final = (KILLED, DIES_AFTER, RAISES, DIES_BEFORE)
_CALL_SHARE: Final = 0.1
_TRANSFORM_SHARE: Final = 0.25


class Sink(Protocol):
    """Where a stream delivers."""

    def append(self, database: str, table: str, records: list[bytes]) -> None:
        """Bring records into a table; what is not as the table is goes to the error output."""

    def write_errors(self, code: str, message: str, records: list[bytes]) -> None:
        """Keep records that can't be delivered."""


@dataclass
class DeliveryStream:
    """The stream; `refused_share` of all records are refused."""

    transform: Function
    sink: Sink
    faults: Faults
    refused_share: float = 0.2
    buffer_seconds: float = 8.0
    buffer_bytes: int = 4 * 1024 * 1024
    broken: list[BaseException] = field(default_factory=list, init=False)
    _buffer: list[bytes] = field(default_factory=list, init=False)
    _undelivered: int = field(default=0, init=False)
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False)
    _is_closed: bool = field(default=False, init=False)

    def __enter__(self) -> Self:
        self._server = _Server((HOST, 0), _handler(self))
        self._threads = [
            threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True),
            threading.Thread(target=self._deliver_all, daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join(60)

    def environ(self) -> dict[str, str]:
        """What leads boto3 to it."""
        return {"AWS_ENDPOINT_URL_FIREHOSE": f"http://{HOST}:{self._server.server_address[1]}"}

    @property
    def is_idle(self) -> bool:
        """Whether everything that was taken is delivered."""
        with self._changed:
            return not self._undelivered

    # taking

    def answer(self, records: list[bytes]) -> tuple[int, dict[str, Any]] | None:
        """Status and body of the answer to a call; None to break off."""
        if not records or len(records) > MOST_RECORDS or sum(map(len, records)) > MOST_BYTES:
            return _fault(400, "InvalidArgumentException", "too much, or nothing")
        if any(len(record) > MOST_RECORD_BYTES for record in records):
            return _fault(400, "InvalidArgumentException", "a record is too large")
        fault = self.faults.one_of(CALL_FAULTS, _CALL_SHARE)
        if fault == THROTTLES:
            return _fault(503, "ServiceUnavailableException", "Slow down.")
        refused = [self.faults.happens(REFUSES, self.refused_share) for _ in records]
        self._take([record for record, no in zip(records, refused, strict=True) if not no])
        if fault == FAILS:
            return _fault(500, "InternalFailure", "nobody knows")
        return None if fault == BREAKS_OFF else (200, _answer(refused))

    def _take(self, records: list[bytes]) -> None:
        with self._changed:
            self._buffer += records
            self._undelivered += len(records)
            self.faults.count("firehose: records taken", len(records))
            self._changed.notify_all()

    # delivering

    def _deliver_all(self) -> None:
        try:
            while not self._is_closed:
                records = self._next_buffer()
                self._deliver(records)
                with self._changed:
                    self._undelivered -= len(records)
        except BaseException as error:  # the test looks at it
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
            "deliveryStreamArn": "arn:aws:firehose:eu-central-1:000000000000:deliverystream/raw",
            "region": "eu-central-1",
            "records": [
                {
                    "recordId": str(number),
                    "approximateArrivalTimestamp": int(time.time() * 1000),
                    "data": base64.b64encode(record).decode(),
                }
                for number, record in enumerate(records)
            ],
        }
        answers = {answer["recordId"]: answer for answer in self._call_transform(event)["records"]}
        return [answers[str(number)] for number in range(len(records))]

    def _call_transform(self, event: dict[str, Any]) -> Any:
        for tries in range(_TRANSFORM_TRIES):
            name = self.transform.name
            kinds = [f"{name} {kind}" for kind in TRANSFORM_FAULTS]
            fault = self.faults.one_of(kinds, _TRANSFORM_SHARE) if tries < _FAULTY_TRIES else None
            try:
                with self.transform.environment() as environment:
                    return self.transform.invoke(environment, event, fault and fault.removeprefix(f"{name} "))
            except FunctionError:
                if tries == _TRANSFORM_TRIES - 1:
                    raise
        raise AssertionError  # the last try returned or raised


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def _handler(stream: DeliveryStream) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            text = self.rfile.read(length)
            if len(text) < length:
                raise ConnectionAbortedError
            asked = json.loads(text)
            assert self.headers["X-Amz-Target"] == "Firehose_20150804.PutRecordBatch"
            answer = stream.answer([base64.b64decode(record["Data"]) for record in asked["Records"]])
            if answer is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            status, body = answer
            said = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def handle(self) -> None:
            """A client that was killed in the middle of a call is what tests are about."""
            try:
                super().handle()
            except ConnectionError:
                stream.faults.count("firehose: client gone in a call")

        def log_message(self, *said: object) -> None:
            """Tests have nothing to say."""

    return Handler


def _fault(status: int, kind: str, message: str) -> tuple[int, dict[str, Any]]:
    return status, {"__type": kind, "message": message}


def _answer(refused: list[bool]) -> dict[str, Any]:
    fault = {"ErrorCode": "ServiceUnavailableException", "ErrorMessage": "Slow down."}
    answers = [fault if no else {"RecordId": uuid.uuid4().hex} for no in refused]
    return {"FailedPutCount": sum(refused), "Encrypted": False, "RequestResponses": answers}


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
