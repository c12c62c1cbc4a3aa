"""A stand-in for Firehose that takes PutRecordBatch over HTTP and refuses as it is told to.

The stand-ins that can be had never refuse a record, and that is what matters here.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest

HOST = "127.0.0.1"
MOST_RECORDS = 500
MOST_BYTES = 4_000_000
MOST_RECORD_BYTES = 1_024_000


@dataclass
class FirehoseStandIn:
    """Refuses records, fails calls, or takes all and never answers, as each of these functions says."""

    refuses: Callable[[bytes], bool] = lambda _: False
    fails: Callable[[], bool] = lambda: False
    breaks: Callable[[], bool] = lambda: False
    hangs: Callable[[], bool] = lambda: False
    taken: list[bytes] = field(default_factory=list)
    calls: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer((HOST, 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Lead boto3 to it."""
        monkeypatch.setenv("AWS_ENDPOINT_URL_FIREHOSE", f"http://{HOST}:{self._server.server_address[1]}")

    def rows(self) -> list[dict[str, Any]]:
        """What was taken, as the sink would read it."""
        return [json.loads(record) for record in self.taken]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert self.headers["X-Amz-Target"] == "Firehose_20150804.PutRecordBatch"
                answer = stand_in._answer([base64.b64decode(record["Data"]) for record in asked["Records"]])
                if answer is None:
                    self.close_connection = True
                    return
                status, body = answer
                said = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.1")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *said: object) -> None:
                """Tests have nothing to say."""

        return Handler

    def _answer(self, records: list[bytes]) -> tuple[int, dict[str, Any]] | None:
        self.calls += 1
        if (
            len(records) > MOST_RECORDS
            or sum(map(len, records)) > MOST_BYTES
            or max(map(len, records)) > MOST_RECORD_BYTES
        ):
            return 400, {"__type": "InvalidArgumentException", "message": "too much"}
        if self.fails():
            return 400, {"__type": "ThrottlingException", "message": "Rate exceeded"}
        if self.breaks():
            self.taken += records
            return None
        if self.hangs():
            self.taken += records
            self._ended.wait(60)
            return None
        refused = [self.refuses(record) for record in records]
        self.taken += [record for record, no in zip(records, refused, strict=True) if not no]
        fault = {"ErrorCode": "ServiceUnavailableException", "ErrorMessage": "Slow down."}
        answers = [fault if no else {"RecordId": str(number)} for number, no in enumerate(refused)]
        return 200, {"FailedPutCount": sum(refused), "Encrypted": False, "RequestResponses": answers}
