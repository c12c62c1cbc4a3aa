"""What dead letters and the circuit breaker need on AWS, by settings; each is made when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from lean_ops.aws.alerts import SnsTopic
from lean_ops.aws.clients import Limits, dynamodb_client, lambda_client, s3_client, sns_client, sqs_client
from lean_ops.aws.environment import Deployment, queue_of_arn
from lean_ops.aws.mappings import QueueMapping, QueueMappings
from lean_ops.aws.objects import BucketObjects
from lean_ops.aws.queues import DeadLetterQueue
from lean_ops.model.errors import WrongUseError
from lean_ops.state.dynamodb_breaker import DynamoCircuits
from lean_ops.state.dynamodb_errors import DynamoErrorTracker

if TYPE_CHECKING:
    from lean_ops.settings import Settings

# The function that reads the topics' queues, behind the deployment's name.
PROCESSOR: Final = "sqs-processor"
# A body may have megabytes.
_FOR_BODIES: Final = Limits(read_seconds=20.0)


class LetterParts:
    """The archive bucket, the tracker, the queue, the breaker's table and mappings, and who is told."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.deployment = Deployment(settings.project, settings.given("environment"))

    @cached_property
    def archive(self) -> BucketObjects:
        """Dead letters, whole."""
        return BucketObjects(s3_client(_FOR_BODIES), self._settings.given("archive_bucket"))

    @cached_property
    def tracker(self) -> DynamoErrorTracker:
        """The index of dead letters."""
        return DynamoErrorTracker(dynamodb_client(), self.deployment.table("error_tracker"))

    @cached_property
    def queue(self) -> DeadLetterQueue:
        """Where dead letters come from."""
        return DeadLetterQueue(sqs_client(Limits()), self.deployment.dead_letter_queue)

    @cached_property
    def circuits(self) -> DynamoCircuits:
        """The topics' traffic and circuits."""
        return DynamoCircuits(dynamodb_client(), self.deployment.table("circuit_breaker"))

    @cached_property
    def mappings(self) -> QueueMappings:
        """What reads the topics' queues."""
        return QueueMappings(lambda_client(), f"{self.deployment.name}-{PROCESSOR}")

    @cached_property
    def alert_topic(self) -> SnsTopic | None:
        """Where alerts are published; nowhere if no topic is set."""
        arn = self._settings.alert_topic_arn
        return SnsTopic(sns_client(), arn) if arn else None

    def topic_of_arn(self, arn: str) -> str:
        """The topic whose queue an ARN is, or WrongUseError."""
        return self.deployment.topic_of_queue(queue_of_arn(arn))

    def topic_queues(self) -> dict[str, QueueMapping]:
        """The mappings of the topics' queues, by topic; what else the function may read is none of ours."""
        found: dict[str, QueueMapping] = {}
        for mapping in self.mappings.all():
            try:
                found[self.topic_of_arn(mapping.queue_arn)] = mapping
            except WrongUseError:
                continue
        return found
