"""Reading a queue: messages in batches, and the deletion of just those that are done with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lean_ops.aws.calls import calling
from lean_ops.model.letter import ReceivedLetter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_sqs import SQSClient

MOST_MESSAGES: Final = 10
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Delivery(NamedTuple):
    """A message and the handle by which this delivery of it is deleted."""

    letter: ReceivedLetter
    handle: str


@dataclass(slots=True)
class DeadLetterQueue:
    """The queue, which is looked up by its name when it is first asked."""

    client: SQSClient
    name: str
    _url: str | None = field(default=None, init=False)

    def receive(self, wait_seconds: int = 0) -> list[Delivery]:
        """The next messages, at most ten; none if there were none for so long."""
        with calling(f"queue {self.name}"):
            answer = self.client.receive_message(
                QueueUrl=self._queue_url(),
                MaxNumberOfMessages=MOST_MESSAGES,
                WaitTimeSeconds=wait_seconds,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
        return [
            Delivery(_letter_of_message(message), message["ReceiptHandle"]) for message in answer.get("Messages", ())
        ]

    def delete(self, handles: Sequence[str]) -> dict[str, str]:
        """Delete deliveries; the handles of those that are still there, with the reason. They come again."""
        left: dict[str, str] = {}
        for start in range(0, len(handles), MOST_MESSAGES):
            group = handles[start : start + MOST_MESSAGES]
            with calling(f"queue {self.name}"):
                answer = self.client.delete_message_batch(
                    QueueUrl=self._queue_url(),
                    Entries=[{"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(group)],
                )
            for failed in answer.get("Failed", ()):
                left[group[int(failed["Id"])]] = f"{failed['Code']}: {failed.get('Message', '')}"[:300]
        return left

    def _queue_url(self) -> str:
        if self._url is None:
            self._url = self.client.get_queue_url(QueueName=self.name)["QueueUrl"]
        return self._url


def letter_of_event(record: Mapping[str, Any]) -> ReceivedLetter:
    """A record of the event that a function is called with by the queue."""
    said = {name: value.get("stringValue") for name, value in record.get("messageAttributes", {}).items()}
    return _letter(record["messageId"], record["body"], record.get("attributes", {}), said)


def _letter_of_message(message: Mapping[str, Any]) -> ReceivedLetter:
    said = {name: value.get("StringValue") for name, value in message.get("MessageAttributes", {}).items()}
    return _letter(message["MessageId"], message["Body"], message.get("Attributes", {}), said)


def _letter(message_id: str, body: str, system: Mapping[str, str], said: Mapping[str, str | None]) -> ReceivedLetter:
    return ReceivedLetter(
        message_id,
        body,
        _EPOCH + timedelta(milliseconds=int(system["SentTimestamp"])),
        int(system.get("ApproximateReceiveCount", "1")),
        {name: value for name, value in said.items() if value is not None},
        system.get("DeadLetterQueueSourceArn"),
    )
