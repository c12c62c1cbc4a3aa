"""Sending to the topics' own queues: batches of which any part may be refused, and what each refusal means."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.aws.clients import ONE_ATTEMPT, Limits
from lean_ops.aws.faults import code_of, is_passing, told
from lean_ops.aws.letters import MOST_BYTES, MOST_MESSAGES, TOPIC_NAME
from lean_ops.model.errors import LeanOpsError, TerminalError, TransientError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from botocore.exceptions import BotoCoreError, ClientError
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef, SendMessageBatchResultTypeDef

    from lean_ops.aws.environment import Deployment

__all__ = ["MOST_BYTES", "MOST_MESSAGES", "QueueGoneError", "TopicQueues", "Verdict", "attribute_bytes"]

_STRING: Final = "String"
# The key of a queue that encrypts; its throttling passes like the queue's own.
_KEY_THROTTLED: Final = "KmsThrottled"
_GONE: Final = frozenset({"NonExistentQueue", "QueueDoesNotExist"})
# What SQS says of a whole call although one message is the reason.
_ABOUT_A_MESSAGE: Final = frozenset(
    {"BatchRequestTooLong", "InvalidMessageContents", "InvalidParameterValue", "InvalidAttributeValue"}
)


class QueueGoneError(TerminalError):
    """The queue is not there, or not there any more."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one message; one that is refused for good would be refused again."""

    taken: bool
    reason: str = ""
    for_good: bool = False


_TAKEN: Final = Verdict(taken=True)
_SILENT: Final = Verdict(taken=False, reason="the queue did not say what became of it")
_OTHER_BODY: Final = Verdict(taken=False, reason="the queue confirmed another body than the one that was sent")


def attribute_bytes(topic: str) -> int:
    """What SQS counts of a message beside its body."""
    return len(TOPIC_NAME) + len(_STRING) + len(topic.encode())


@dataclass(frozen=True, slots=True)
class TopicQueues:
    """The queues of a deployment. A call is made once: whoever sends knows best when to send again."""

    client: SQSClient
    deployment: Deployment

    def url(self, topic: str) -> str:
        """Where a topic's queue is; QueueGoneError if there is none."""
        from botocore.exceptions import BotoCoreError, ClientError

        name = self.deployment.queue(topic)
        try:
            return self.client.get_queue_url(QueueName=name)["QueueUrl"]
        except (BotoCoreError, ClientError) as error:
            raise _error(name, error) from error

    def send(self, url: str, topic: str, bodies: Sequence[str]) -> list[Verdict]:
        """A verdict for each body, in their order; an error if nothing is known of any of them."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer = self.client.send_message_batch(QueueUrl=url, Entries=_entries(topic, bodies))
        except ClientError as error:
            if code_of(error) not in _ABOUT_A_MESSAGE:
                raise _error(url, error) from error
            if len(bodies) == 1:
                return [Verdict(taken=False, reason=told(error), for_good=True)]
            return [verdict for body in bodies for verdict in self.send(url, topic, (body,))]
        except BotoCoreError as error:
            raise _error(url, error) from error
        return _verdicts(bodies, answer)


def sqs_client(timeout_seconds: float, connections: int) -> SQSClient:
    """A client of SQS for as many senders at a time as there are connections."""
    import boto3
    from botocore.config import Config

    limits = Limits(connect_seconds=timeout_seconds / 2, read_seconds=timeout_seconds, attempts=ONE_ATTEMPT.attempts)
    return boto3.client("sqs", config=limits.config().merge(Config(max_pool_connections=connections)))


def _entries(topic: str, bodies: Sequence[str]) -> list[SendMessageBatchRequestEntryTypeDef]:
    return [
        {
            "Id": str(position),
            "MessageBody": body,
            # So that a message that the queue itself moves to the dead letter queue still says whose it is.
            "MessageAttributes": {TOPIC_NAME: {"DataType": _STRING, "StringValue": topic}},
        }
        for position, body in enumerate(bodies)
    ]


def _verdicts(bodies: Sequence[str], answer: SendMessageBatchResultTypeDef) -> list[Verdict]:
    """Only what the answer names as taken, with the digest of that very body, counts as taken."""
    taken = {success["Id"]: success["MD5OfMessageBody"] for success in answer.get("Successful", ())}
    failed = {
        failure["Id"]: Verdict(
            taken=False,
            reason=f"{failure['Code']}: {failure.get('Message', '')}"[:300],
            for_good=failure["SenderFault"],
        )
        for failure in answer.get("Failed", ())
    }
    return [_verdict(body, taken.get(str(at)), failed.get(str(at), _SILENT)) for at, body in enumerate(bodies)]


def _verdict(body: str, digest: str | None, otherwise: Verdict) -> Verdict:
    if digest is None:
        return otherwise
    return _TAKEN if digest == hashlib.md5(body.encode(), usedforsecurity=False).hexdigest() else _OTHER_BODY


def _error(queue: str, error: ClientError | BotoCoreError) -> LeanOpsError:
    from botocore.exceptions import ClientError

    code = code_of(error) if isinstance(error, ClientError) else ""
    if code in _GONE:
        remedy = "Make it (Terraform does, for every topic in its variables), or leave the subscription out."
        return QueueGoneError("there is no such queue", where=queue, remedy=remedy)
    if is_passing(error) or code == _KEY_THROTTLED:
        return TransientError("the queue can't be reached", where=queue, found=told(error))
    remedy = "Look at the bridge's role and at the queue's policy and key."
    return TerminalError("the queue does not let the bridge in", where=queue, found=told(error), remedy=remedy)
