"""A Firehose stream as an HTTP server: takes PutRecordBatch and refuses a share, then transforms and delivers.

What it took it keeps until it is delivered. It speaks what boto3 sends for PutRecordBatch and nothing else.
"""

from __future__ import annotations

import base64
import json
import socket
import threading
import uuid
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from tests.aws_local.delivery import Delivery
from tests.aws_local.function import DIES_AFTER, DIES_BEFORE, KILLED, RAISES, Function, FunctionError
from tests.servers.process import HOST

MOST_RECORDS: Final = 500
MOST_BYTES: Final = 4_000_000
MOST_RECORD_BYTES: Final = 1_024_000
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


@dataclass(kw_only=True)
class DeliveryStream(Delivery):
    """The stream; `refused_share` of all records are refused."""

    transform: Function
    refused_share: float = 0.2

    def __enter__(self) -> Self:
        self._server = _Server((HOST, 0), _handler(self))
        self._serving = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._serving.start()
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._server.shutdown()
        self._server.server_close()
        self._serving.join(60)

    def environ(self) -> dict[str, str]:
        """What leads boto3 to it."""
        return {"AWS_ENDPOINT_URL_FIREHOSE": f"http://{HOST}:{self._server.server_address[1]}"}

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
        self.take([record for record, no in zip(records, refused, strict=True) if not no])
        if fault == FAILS:
            return _fault(500, "InternalFailure", "nobody knows")
        return None if fault == BREAKS_OFF else (200, _answer(refused))

    def call_transform(self, event: dict[str, Any]) -> Any:
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
