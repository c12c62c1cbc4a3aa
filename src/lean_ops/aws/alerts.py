"""Alerts to an SNS topic, from which mail, chat and pagers take them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from lean_ops.aws.calls import calling

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient

_SUBJECT_CHARACTERS: Final = 100
_MESSAGE_CHARACTERS: Final = 8_000
_ID_CHARACTERS: Final = 500
_not_printable: Final = re.compile(r"[^\x20-\x7e]+")


class Alert(Protocol):
    """What is told of an alert."""

    @property
    def alert_id(self) -> str:
        """Its id."""

    @property
    def topic(self) -> str:
        """The topic that it is about."""

    @property
    def kind(self) -> str:
        """What sort of alert it is."""

    @property
    def severity(self) -> str:
        """How bad it is."""

    @property
    def message(self) -> str:
        """What happened, for a person."""

    @property
    def value(self) -> float | None:
        """What was measured."""

    @property
    def threshold(self) -> float | None:
        """What it may be."""


@dataclass(frozen=True, slots=True)
class SnsTopic:
    """The topic that alerts are published to."""

    client: SNSClient
    arn: str

    def publish(self, alert: Alert) -> None:
        """Tell everybody who has subscribed; kind and severity are attributes, by which subscriptions filter."""
        with calling(f"alert topic {self.arn}"):
            self.client.publish(
                TopicArn=self.arn,
                Subject=subject_of(alert),
                Message=message_of(alert),
                MessageAttributes={
                    "kind": {"DataType": "String", "StringValue": alert.kind},
                    "severity": {"DataType": "String", "StringValue": alert.severity},
                },
            )


def subject_of(alert: Alert) -> str:
    """One line of at most 100 ASCII characters, as mail wants it."""
    words = f"[{alert.severity}] {alert.kind} {alert.topic}: {alert.message}"
    return _not_printable.sub("?", " ".join(words.split()))[:_SUBJECT_CHARACTERS].rstrip()


def message_of(alert: Alert) -> str:
    """The whole alert as JSON, far below what SNS takes whatever it holds: all but ASCII is escaped."""
    told = {
        "alert_id": alert.alert_id[:_ID_CHARACTERS],
        "kind": alert.kind,
        "severity": alert.severity,
        "topic_name": alert.topic,
        "message": alert.message[:_MESSAGE_CHARACTERS],
        "value": alert.value,
        "threshold": alert.threshold,
    }
    return json.dumps(told)
