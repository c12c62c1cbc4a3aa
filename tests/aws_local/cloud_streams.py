"""Firehose streams into Iceberg tables: what moto takes and drops is transformed, routed and delivered.

Transform, error output and buffer are those of the stream; only its waiting can be cut short. What differs: pyiceberg
commits, at once and once, and nobody's rights are asked for.
"""

from __future__ import annotations

import json
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any, Final

from moto.firehose.exceptions import InvalidArgumentException
from moto.firehose.models import DeliveryStream, FirehoseBackend
from pyiceberg.catalog import Catalog
from tests.aws_local.cloud_place import Place
from tests.aws_local.delivery import Delivery
from tests.aws_local.faults import Faults
from tests.aws_local.firehose import MOST_BYTES, MOST_RECORD_BYTES, MOST_RECORDS
from tests.aws_local.sink import IcebergSink
from tests.servers.server import ACCESS_KEY, REGION, SECRET_KEY

from lean_ops.aws.glue_catalog import LakeGlueCatalog

_MEBIBYTE: Final = 1024 * 1024
_TRANSFORM_TRIES: Final = 4  # Firehose tries three times more, then the records are error output
_put_record_batch: Final = FirehoseBackend.put_record_batch
_delete_delivery_stream: Final = FirehoseBackend.delete_delivery_stream


@dataclass(kw_only=True)
class IcebergStream(Delivery):
    """A stream of the cloud; its transform is called by the cloud's own Lambda."""

    functions: Any
    transform_arn: str

    def call_transform(self, event: dict[str, Any]) -> Any:
        for _ in range(_TRANSFORM_TRIES):
            answer = self.functions.invoke(FunctionName=self.transform_arn, Payload=json.dumps(event).encode())
            told = json.loads(answer["Payload"].read())
            if "FunctionError" not in answer:
                return told
        failed = {"result": "ProcessingFailed", "data": ""}
        return {"records": [{"recordId": record["recordId"], **failed} for record in event["records"]]}


@dataclass
class Streams:
    """The streams that were written to so far; none of them waits longer than `longest_wait`."""

    place: Place
    longest_wait: float
    _clients: dict[str, Any] = field(default_factory=dict)
    _running: dict[str, IcebergStream] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def install(self) -> None:
        """Records for Iceberg come here from now on."""
        streams = self
        # Made now: whoever puts the first records waits a few seconds at most, and would put them again.
        self._clients = {service: self.place.client(service) for service in ("glue", "lambda", "s3")}

        def put_record_batch(
            self: FirehoseBackend, delivery_stream_name: str, records: list[dict[str, bytes]]
        ) -> dict[str, Any]:
            found = self.delivery_streams.get(delivery_stream_name)
            if found is None or "Iceberg" not in found.destinations[0]:
                answer: dict[str, Any] = _put_record_batch(self, delivery_stream_name, records)
                return answer
            streams.take(found, [record["Data"] for record in records])
            told = [{"RecordId": uuid.uuid4().hex} for _ in records]
            return {"FailedPutCount": 0, "Encrypted": True, "RequestResponses": told}

        def delete_delivery_stream(self: FirehoseBackend, delivery_stream_name: str) -> None:
            _delete_delivery_stream(self, delivery_stream_name)
            streams.forget(delivery_stream_name)

        FirehoseBackend.put_record_batch = put_record_batch
        FirehoseBackend.delete_delivery_stream = delete_delivery_stream

    def take(self, stream: DeliveryStream, records: list[bytes]) -> None:
        """Take records, within the limits of one call."""
        if not 0 < len(records) <= MOST_RECORDS or sum(map(len, records)) > MOST_BYTES:
            raise InvalidArgumentException("a call takes 1 to 500 records and 4 MB")
        if any(len(record) > MOST_RECORD_BYTES for record in records):
            raise InvalidArgumentException("a record has at most 1,000 KiB")
        with self._lock:
            name = stream.delivery_stream_name
            if name not in self._running:
                self._running[name] = self._made(stream)
                self._running[name].begin()
        for error in self._running[name].broken:
            self.place.say(f"{name}: delivers no more: {error!r}")
        self._running[name].take(records)

    def forget(self, name: str) -> None:
        """Deliver nothing more of a stream that is no more."""
        with self._lock:
            stream = self._running.pop(name, None)
        if stream is not None:
            stream.end()

    def close(self) -> None:
        """No stream delivers any more when this returns."""
        for name in list(self._running):
            self.forget(name)

    def _made(self, stream: DeliveryStream) -> IcebergStream:
        told = stream.destinations[0]["Iceberg"]
        buffer, output = told["BufferingHints"], told["S3DestinationDescription"]
        bucket = output["BucketARN"].rpartition(":")[2]
        catalog = _catalog(self.place, self._clients["glue"])
        faults = Faults(0)
        return IcebergStream(
            sink=IcebergSink(lambda: catalog, self._clients["s3"], bucket, faults),
            faults=faults,
            buffer_seconds=min(float(buffer["IntervalInSeconds"]), self.longest_wait),
            buffer_bytes=int(buffer["SizeInMBs"]) * _MEBIBYTE,
            arn=stream.delivery_stream_arn,
            functions=self._clients["lambda"],
            transform_arn=_transform_arn(told),
        )


def _transform_arn(told: dict[str, Any]) -> str:
    (processor,) = told["ProcessingConfiguration"]["Processors"]
    given = {one["ParameterName"]: one["ParameterValue"] for one in processor["Parameters"]}
    return str(given["LambdaArn"])


def _catalog(place: Place, glue: Any) -> Catalog:
    """The Glue catalog of the cloud, with its files where the cloud's S3 is."""
    url = place.endpoints.get("AWS_ENDPOINT_URL_S3", place.url)
    files = {"s3.endpoint": url, "s3.access-key-id": ACCESS_KEY, "s3.secret-access-key": SECRET_KEY}
    return LakeGlueCatalog("streams", glue, "", {**files, "s3.region": REGION})
