"""The Firehose transform: tells the Iceberg sink into which table a record goes.

Firehose must call it with a buffer of at most 1 MB (BufferSizeInMBs): an answer of Lambda ends at 6 MB, and records
of the smallest size grow to three times theirs in it. What can't be routed is ProcessingFailed and lands
under the error prefix, from where `lean-ops ingest --from-firehose-errors` brings it back; nothing is ever Dropped.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from aws_lambda_powertools.logging import Logger

from lean_ops.aws.environment import Deployment, TransformEnvironment
from lean_ops.entrypoints.lambdas.telemetry import emit
from lean_ops.ingest.firehose_record import NotARecordError, from_record, to_record
from lean_ops.model.tables import Names

SERVICE: Final = "firehose-transform"
LISTED: Final = 20


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """The function's entry."""
    transform = _transform()
    transform.log.append_keys(function_request_id=getattr(context, "aws_request_id", None))
    return transform(event)


@cache
def _transform() -> Transform:
    told = TransformEnvironment.of(os.environ)
    return Transform(told.deployment, Names(told.database_prefix), Logger(service=SERVICE))


@dataclass(frozen=True, slots=True)
class Transform:
    """Routes the records of a call, each for itself."""

    deployment: Deployment
    names: Names
    log: Logger

    def __call__(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """An answer for every record, in their order."""
        failed: list[tuple[str, str]] = []
        answers = []
        for record in event["records"]:
            try:
                answers.append(self._routed(record))
            except NotARecordError as error:
                failed.append((record["recordId"], str(error)))
                answers.append(_failed(record))
        self._tell(len(answers), failed)
        return {"records": answers}

    def _routed(self, record: Mapping[str, Any]) -> dict[str, Any]:
        row = from_record(_data(record))
        table = self.names.raw(row.topic_name)
        return {
            "recordId": record["recordId"],
            "result": "Ok",
            # Written anew: of a key that came twice, or out of order, the sink must not make its own sense.
            "data": base64.b64encode(to_record(row)).decode(),
            "metadata": {
                "otfMetadata": {
                    "destinationDatabaseName": table.database,
                    "destinationTableName": table.table,
                    "operation": "insert",
                }
            },
        }

    def _tell(self, received: int, failed: list[tuple[str, str]]) -> None:
        for record_id, reason in failed[:LISTED]:
            self.log.error("record can't be routed", extra={"record_id": record_id, "reason": reason[:300]})
        self.log.info("batch", extra={"received": received, "failed": len(failed)})
        counts = {"received": received, "routed": received - len(failed), "processing_failed": len(failed)}
        emit(SERVICE, self.deployment, counts)


def _data(record: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(record["data"], validate=True)
    except (KeyError, TypeError, binascii.Error, ValueError) as error:
        raise NotARecordError(f"no base64 data: {error!r}") from None


def _failed(record: Mapping[str, Any]) -> dict[str, Any]:
    return {"recordId": record["recordId"], "result": "ProcessingFailed", "data": record.get("data", "")}
