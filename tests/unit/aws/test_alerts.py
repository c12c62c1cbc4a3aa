"""Alerts on their way to SNS."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.aws.alerts import SnsTopic, message_of, subject_of
from lean_ops.ledger.books import Alert
from lean_ops.model.errors import TerminalError, TransientError

ARN = "arn:aws:sns:eu-central-1:000000000000:alerts"
ALERT = Alert("b1", "events", "ERROR_RATE", "warning", "6 of 100 records\nwere refused", 0.06, 0.05)
WHOLE = {
    "alert_id": "ERROR_RATE-events-b1",
    "kind": "ERROR_RATE",
    "severity": "warning",
    "topic_name": "events",
    "message": "6 of 100 records\nwere refused",
    "value": 0.06,
    "threshold": 0.05,
}


@pytest.fixture
def sns() -> Any:
    return boto3.Session("key", "secret", region_name="eu-central-1").client("sns")


def test_an_alert_is_published_whole_with_attributes_to_filter_by(sns: Any) -> None:
    subject = "[warning] ERROR_RATE events: 6 of 100 records were refused"
    said = {
        "kind": {"DataType": "String", "StringValue": "ERROR_RATE"},
        "severity": {"DataType": "String", "StringValue": "warning"},
    }
    asked = {"TopicArn": ARN, "Subject": subject, "Message": json.dumps(WHOLE), "MessageAttributes": said}
    with Stubber(sns) as stub:
        stub.add_response("publish", {"MessageId": "1"}, asked)
        SnsTopic(sns, ARN).publish(ALERT)
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(("code", "error"), [("NotFound", TerminalError), ("ThrottledException", TransientError)])
def test_a_topic_that_does_not_take_it_is_named(sns: Any, code: str, error: type[Exception]) -> None:
    with Stubber(sns) as stub:
        stub.add_client_error("publish", code)
        with pytest.raises(error, match="alert topic arn:aws:sns"):
            SnsTopic(sns, ARN).publish(ALERT)


@given(st.text(), st.text(), st.text(max_size=20), st.text(max_size=20), st.text())
def test_whatever_an_alert_says_sns_takes_it(key: str, topic: str, kind: str, severity: str, message: str) -> None:
    alert = Alert(key * 50, topic, kind, severity, message * 1000)
    subject = subject_of(alert)
    assert subject.isascii()
    assert subject.isprintable()
    assert 0 < len(subject) <= 100
    assert len(message_of(alert).encode()) < 200_000
    assert json.loads(message_of(alert))["kind"] == kind
