"""The SQS processor: a topic's messages into the Firehose stream, what is refused to the dead letter queue.

It answers with exactly the messages that must come again, so its event source mapping needs ReportBatchItemFailures.
Of the function's timeout (a minute is good) nine seconds are kept for an attempt that hangs and for the answer.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import islice
from typing import Any, Final, Protocol

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from lean_ops.aws.clients import BRIEF, ONE_ATTEMPT, dynamodb_client, firehose_client, s3_client, sqs_client
from lean_ops.aws.environment import Deployment, ProcessorEnvironment, queue_of_arn
from lean_ops.aws.firehose import DeliveryStream
from lean_ops.aws.letters import BucketBodies, LetterBox
from lean_ops.aws.sending import Patience
from lean_ops.entrypoints.lambdas.telemetry import emit
from lean_ops.ingest.delivery import Batch, Delivery, Message, Source, Tally
from lean_ops.model.errors import TerminalError, WrongUseError
from lean_ops.state.circuits import TrafficBook

SERVICE: Final = "sqs-processor"
LISTED: Final = 20


class Context(Protocol):
    """What Lambda tells of a call."""

    def get_remaining_time_in_millis(self) -> int:
        """Until the call is ended, whatever it does."""


def handler(event: Mapping[str, Any], context: Context) -> PartialItemFailureResponse:
    """The function's entry."""
    return _processor()(event, context)


@cache
def _processor() -> SqsProcessor:
    """The parts, put together by the first call: boto3 takes longer to load than all the rest, and nobody waits."""
    from lean_ops.state.dynamodb_breaker import DynamoCircuits
    from lean_ops.state.dynamodb_calls import Patience as StorePatience
    from lean_ops.state.dynamodb_deliveries import DynamoDeliveries

    told = ProcessorEnvironment.of(os.environ)
    deployment = told.deployment
    dynamodb = dynamodb_client(BRIEF)
    delivery = Delivery(
        DeliveryStream(firehose_client(), told.delivery_stream),
        LetterBox(
            sqs_client(), deployment.dead_letter_queue, BucketBodies(s3_client(ONE_ATTEMPT), told.archive_bucket)
        ),
        DynamoDeliveries(dynamodb, deployment.table("idempotency_keys"), StorePatience(seconds=BRIEF.call_seconds)),
        clock=lambda: datetime.now(UTC),
    )
    traffic = DynamoCircuits(dynamodb, deployment.table("circuit_breaker"))
    return SqsProcessor(deployment, delivery, traffic, Logger(service=SERVICE), time.sleep, random.random)


@dataclass(frozen=True, slots=True)
class SqsProcessor:
    """A batch of SQS messages to their fates, with what is counted and told of them."""

    deployment: Deployment
    delivery: Delivery
    traffic: TrafficBook
    log: Logger
    sleep: Callable[[float], None]
    chance: Callable[[], float]

    def __call__(self, event: Mapping[str, Any], context: Context) -> PartialItemFailureResponse:
        """The ids of the messages that must come again."""
        self.log.append_keys(function_request_id=getattr(context, "aws_request_id", None))
        # A queue may deliver a message twice in one batch: it is one message and has one fate.
        records = {record["messageId"]: record for record in event["Records"]}
        batch = self.delivery.begin(records, self._patience(context))
        failed = self._stumbled_over(records, batch)
        failed.update(batch.deliver())
        for sqs_message_id in failed:
            batch.tallies[self._source(records[sqs_message_id])].failures += 1
        self._record_traffic(batch)
        self._tell(batch, failed)
        return {"batchItemFailures": [{"itemIdentifier": sqs_message_id} for sqs_message_id in failed]}

    def _patience(self, context: Context) -> Patience:
        def seconds_left() -> float:
            return context.get_remaining_time_in_millis() / 1000

        return Patience.of_call(seconds_left, ONE_ATTEMPT.attempt_seconds, self.sleep, self.chance)

    def _stumbled_over(self, records: Mapping[str, dict[str, Any]], batch: Batch) -> dict[str, str]:
        """Let the batch take every message; the ids of those that it could not judge, with the reason."""
        # Without the flag a batch of which nothing can be judged would be an exception that names no message.
        processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)

        def take(record: SQSRecord) -> None:
            batch.take(self._message(record.raw_event))

        with processor(records=list(records.values()), handler=take):
            processor.process()
        failures = processor.response()["batchItemFailures"]
        reasons = (f"{type(error).__name__}: {error}" for _, error, _ in processor.exceptions)
        return {str(failure["itemIdentifier"]): reason for failure, reason in zip(failures, reasons, strict=True)}

    def _message(self, record: Mapping[str, Any]) -> Message:
        source = self._source(record)
        if source.topic_name == self.deployment.dead_letter_queue:
            # Its letters would be refused and come back to it for ever.
            remedy = "Remove the mapping of that queue to this function."
            raise TerminalError("messages of the dead letter queue came to the SQS processor", remedy=remedy)
        count = record.get("attributes", {}).get("ApproximateReceiveCount", "1")
        return Message(record["messageId"], source, record["body"], int(count))

    def _source(self, record: Mapping[str, Any]) -> Source:
        return _source_of(self.deployment, record.get("eventSourceARN", ""))

    def _record_traffic(self, batch: Batch) -> None:
        """Tell the circuit breaker of every topic. A book that can't be kept sends no message back."""
        for source, tally in batch.tallies.items():
            if source.refusal is not None:
                continue
            if batch.patience.seconds_left() < BRIEF.call_seconds:
                batch.store_faults.append(f"no time left to tell the breaker of {source.topic_name}")
                continue
            failed = tally.failures + tally.dead_letters.total()
            try:
                self.traffic.record(source.topic_name, batch.arrived // 60, tally.received, failed)
            except Exception as error:  # whatever the store's fault is
                batch.store_faults.append(f"the breaker was not told of {source.topic_name}: {error!r}")

    def _tell(self, batch: Batch, failed: Mapping[str, str]) -> None:
        """Log what a person must know, in a bounded number of lines, and count everything."""
        sent = (letter for letter in batch.letters if letter.sqs_message_id not in failed)
        for letter in islice(sent, LISTED):
            self.log.warning("dead letter", extra=letter.attributes())
        for sqs_message_id, reason in islice(failed.items(), LISTED):
            self.log.error("message goes back", extra={"sqs_message_id": sqs_message_id, "reason": reason})
        for fault in batch.store_faults:
            self.log.error("a store failed, ingestion goes on", extra={"reason": fault})
        for source, tally in batch.tallies.items():
            self._tell_topic(source.topic_name, tally)
        emit(SERVICE, self.deployment, {"store_faults": len(batch.store_faults)})

    def _tell_topic(self, topic: str, tally: Tally) -> None:
        counts = tally.counts()
        self.log.info("batch", extra={"topic_name": topic, **counts, "dead_letters": dict(tally.dead_letters)})
        emit(SERVICE, self.deployment, counts, topic=topic)
        for error_type, count in tally.dead_letters.items():
            emit(SERVICE, self.deployment, {"dead_letters": count}, topic=topic, error_type=error_type)


@lru_cache(maxsize=1024)
def _source_of(deployment: Deployment, arn: str) -> Source:
    queue = queue_of_arn(arn)
    try:
        return Source(deployment.topic_of_queue(queue))
    except WrongUseError as error:
        return Source(queue, str(error))
