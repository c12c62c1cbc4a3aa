"""Somebody who subscribed to the alerts' topic, by a queue."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from tests.aws_local.stage import Stage

_QUEUE: Final = "somebody-who-reads-alerts"


@dataclass
class Subscriber:
    """Reads the alerts that were published since it subscribed."""

    stage: Stage
    seen: list[dict[str, Any]] = field(default_factory=list)

    def subscribe(self) -> None:
        """See alerts from now on."""
        self._sqs = self.stage.client("sqs")
        self._url = self._sqs.create_queue(QueueName=_QUEUE)["QueueUrl"]
        asked = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])
        topic, arn = self.stage.outputs["alert_topic_arn"], asked["Attributes"]["QueueArn"]
        sns = self.stage.client("sns")
        self._subscription = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)["SubscriptionArn"]

    def leave(self) -> None:
        """Nothing is left of it."""
        self.stage.client("sns").unsubscribe(SubscriptionArn=self._subscription)
        self._sqs.delete_queue(QueueUrl=self._url)

    def alerts(self, kind: str) -> list[dict[str, Any]]:
        """All alerts of a kind so far, each as the document that was published."""
        while messages := self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                self.seen.append(json.loads(json.loads(message["Body"])["Message"]))
                self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
        return [alert for alert in self.seen if alert["kind"] == kind]
