"""A schema was uploaded to `schemas/{topic}/pending/schema.json`: it becomes active, or failed with its reasons.

Events of S3 come directly or by EventBridge, and more than once. The judgement is that of `lean-ops schema submit`;
a bad schema is an answer and never an error. An error means that the same event is to come again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import unquote_plus

from lean_ops.aws.schema_objects import PREFIX
from lean_ops.entrypoints.lambdas.asked import answered, as_object
from lean_ops.govern.uploads import judge
from lean_ops.model.errors import WrongUseError
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

SERVICE: Final = "schema-validator"
_PENDING: Final = re.compile(re.escape(PREFIX) + r"([^/]+)/pending/schema\.json")


@dataclass(frozen=True, slots=True)
class Upload:
    """An object that an event tells of, and who put it there."""

    bucket: str
    key: str
    by: str


def handler(event: Any, _: object) -> dict[str, Any]:
    """The function's entry."""

    def work() -> tuple[dict[str, Any], dict[str, Any]]:
        answer = {"results": [_judged(upload) for upload in uploads(event)]}
        return answer, answer

    return answered(SERVICE, work)


@cache
def _services() -> Services:
    return Services(load_settings({"profile": "aws"}, aws_needs=("environment", "warehouse", "schema_bucket")))


def _judged(upload: Upload) -> dict[str, Any]:
    services = _services()
    found = _PENDING.fullmatch(upload.key)
    if found is None or upload.bucket != services.settings.given("schema_bucket"):
        return {"key": upload.key, "outcome": "IGNORED"}
    return judge(services.submissions, found[1], submitted_by=upload.by, now=services.clock()).document()


# events


def uploads(event: Any) -> list[Upload]:
    """The objects that an event of S3, or of EventBridge about S3, tells of; WrongUseError for any other event."""
    told = as_object(event)
    if told.get("Event") == "s3:TestEvent":  # sent when the notification is set up
        return []
    try:
        if told.get("source") == "aws.s3":
            return [_of_detail(told["detail"])]
        return [_of_record(record) for record in told["Records"]]
    except (KeyError, TypeError, AttributeError) as error:
        expected = "an event of S3, or of EventBridge with source aws.s3"
        found = f"{type(error).__name__}: {error}"[:200]
        raise WrongUseError("it can't be understood", where="the event", found=found, expected=expected) from error


def _of_record(record: Mapping[str, Any]) -> Upload:
    s3, by = record["s3"], record.get("userIdentity") or {}
    return Upload(str(s3["bucket"]["name"]), unquote_plus(s3["object"]["key"]), _who(by.get("principalId")))


def _of_detail(detail: Mapping[str, Any]) -> Upload:
    return Upload(str(detail["bucket"]["name"]), str(detail["object"]["key"]), _who(detail.get("requester")))


def _who(by: Any) -> str:
    """Who uploaded it, as the schema history keeps it."""
    return str(by)[:256] if by else "unknown"
