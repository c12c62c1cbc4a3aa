"""Sending dead letters: the message as it came, its reason beside it in message attributes.

A letter that is too large to travel leaves its body in the archive bucket and takes the beginning of it along.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from lean_ops.aws.faults import is_passing, told
from lean_ops.aws.sending import Refused, cut, send_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import (
        MessageAttributeValueTypeDef,
        SendMessageBatchRequestEntryTypeDef,
        SendMessageBatchResultTypeDef,
    )

    from lean_ops.aws.sending import Patience
    from lean_ops.model.envelope import DeadLetter

ERROR_TYPE: Final = "error_type"
ERROR_MESSAGE: Final = "error_message"
TOPIC_NAME: Final = "topic_name"
SOURCE: Final = "source"
MESSAGE_ID: Final = "message_id"
SQS_MESSAGE_ID: Final = "sqs_message_id"
RECEIVE_COUNT: Final = "receive_count"
BODY_REF: Final = "body_ref"

MOST_MESSAGES: Final = 10
# SQS takes 1 MiB of bodies and attributes together, of a message and of a batch; the rest is margin.
MOST_BYTES: Final = 1_040_000
HEAD_BYTES: Final = 64 * 1024
_MESSAGE_CHARACTERS: Final = 512
_ID_CHARACTERS: Final = 256
_STRING: Final = "String"
# Characters that SQS takes neither in a body nor in an attribute, and line breaks, which are no use in a reason.
_untaken: Final = re.compile("[^\x20-\x7e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_unsafe_in_keys: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Letter:
    """A refused message on its way to the dead letter queue."""

    sqs_message_id: str
    topic_name: str
    reason: DeadLetter
    body: str
    receive_count: int
    source: str = "sqs"

    def attributes(self) -> dict[str, str]:
        """What is said of it, as SQS takes it."""
        said = {
            ERROR_TYPE: str(self.reason.error_type),
            ERROR_MESSAGE: _takeable(self.reason.error_message, _MESSAGE_CHARACTERS),
            TOPIC_NAME: _takeable(self.topic_name, _ID_CHARACTERS),
            SOURCE: self.source,
            MESSAGE_ID: _takeable(self.reason.message_id or "", _ID_CHARACTERS),
            SQS_MESSAGE_ID: _takeable(self.sqs_message_id, _ID_CHARACTERS),
            RECEIVE_COUNT: str(self.receive_count),
        }
        return {name: value for name, value in said.items() if value}

    def body_key(self) -> str:
        """Where its body is kept when it is too large to travel; the same place each time."""
        topic, name = (_unsafe_in_keys.sub("_", part)[:128] for part in (self.topic_name, self.sqs_message_id))
        return f"oversized/{topic}/{name}.json"


class BodyStore(Protocol):
    """Where bodies are kept that are too large to travel."""

    def put(self, key: str, body: bytes) -> None:
        """Keep a body under a key, in the place of what was there."""


@dataclass(frozen=True, slots=True)
class BucketBodies:
    """Bodies in a bucket."""

    client: S3Client
    bucket: str

    def put(self, key: str, body: bytes) -> None:
        """Keep a body as an object."""
        self.client.put_object(Bucket=self.bucket, Key=key, Body=body, ContentType="application/json")


@dataclass(slots=True)
class LetterBox:
    """The way to the dead letter queue, which is looked up by its name when the first letter goes."""

    client: SQSClient
    queue: str
    bodies: BodyStore
    _url: str | None = field(default=None, init=False)

    def send(self, letters: Sequence[Letter], patience: Patience) -> dict[int, str]:
        """Send letters; the positions of those that are not in the queue, with the reason."""
        sizes = [_size(letter.body, letter.attributes()) for letter in letters]
        return send_all(
            len(letters),
            lambda positions: cut(positions, sizes, MOST_MESSAGES, MOST_BYTES),
            lambda batch: self._send_batch({position: letters[position] for position in batch}),
            patience,
        )

    def _send_batch(self, batch: Mapping[int, Letter]) -> Mapping[int, Refused]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            entries = [self._entry(position, letter) for position, letter in batch.items()]
            return _refused(batch, self.client.send_message_batch(QueueUrl=self._queue_url(), Entries=entries))
        except (BotoCoreError, ClientError) as error:
            passing = is_passing(error)
            if passing or len(batch) == 1:
                return dict.fromkeys(batch, Refused(told(error), for_good=not passing))
        # One letter that the queue can't take must not keep its neighbours out.
        alone = (self._send_batch({position: letter}) for position, letter in batch.items())
        return {position: why for refused in alone for position, why in refused.items()}

    def _entry(self, position: int, letter: Letter) -> SendMessageBatchRequestEntryTypeDef:
        """A letter as SQS takes it, without the greater part of its body if that is too large to travel."""
        text, attributes = letter.body, letter.attributes()
        if _size(text, attributes) > MOST_BYTES:
            body, attributes[BODY_REF] = _bytes(text), letter.body_key()
            self.bodies.put(attributes[BODY_REF], body)
            text = body[:HEAD_BYTES].decode("utf-8", "ignore")
        values: dict[str, MessageAttributeValueTypeDef] = {
            name: {"DataType": _STRING, "StringValue": value} for name, value in attributes.items()
        }
        return {"Id": str(position), "MessageBody": text, "MessageAttributes": values}

    def _queue_url(self) -> str:
        if self._url is None:
            self._url = self.client.get_queue_url(QueueName=self.queue)["QueueUrl"]
        return self._url


def _refused(batch: Iterable[int], answer: SendMessageBatchResultTypeDef) -> dict[int, Refused]:
    """Every letter that the answer does not call successful."""
    taken = {success["Id"] for success in answer.get("Successful", ())}
    faults = {
        failure["Id"]: Refused(f"{failure['Code']}: {failure.get('Message', '')}"[:300], failure["SenderFault"])
        for failure in answer.get("Failed", ())
    }
    silent = Refused("the queue did not say what became of it")
    return {position: faults.get(str(position), silent) for position in batch if str(position) not in taken}


def _takeable(text: str, longest: int) -> str:
    return _untaken.sub("\ufffd", text[:longest])


def _size(body: str, attributes: Mapping[str, str]) -> int:
    """What SQS counts of a message: its body, and its attributes with their names and types."""
    return len(_bytes(body)) + sum(len(_bytes(name + _STRING + value)) for name, value in attributes.items())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
