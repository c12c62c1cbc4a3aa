"""The daily look at Pub/Sub's topics: the registry, Terraform's variables in a bucket, and a word about what is new.

`{"gcp_project": "…", "prefix": "…", "label": "KEY=VALUE"}`; without a project the function's own setting counts. It
writes Iceberg tables. It asks for Terraform's apply by an alert: it has no right to make a queue.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Any, Final

from lean_ops.aws.clients import s3_client
from lean_ops.aws.environment import Deployment
from lean_ops.aws.objects import BucketObjects
from lean_ops.bridge.discovery import Choice, Discovery, Findings
from lean_ops.bridge.variables import FILE_NAME, BucketFile, Variables
from lean_ops.entrypoints.lambdas.asked import answered, as_object
from lean_ops.ledger.books import Alert
from lean_ops.model.errors import WrongUseError
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

SERVICE: Final = "discovery"
KEY: Final = f"discovery/{FILE_NAME}"
GCP_PROJECT: Final = "LEAN_OPS_BRIDGE_GCP_PROJECT"
NEEDS: Final = ("environment", "warehouse", "schema_bucket")
_KIND: Final = "NEW_TOPICS"
# An alert belongs to a topic; this one is about all of them.
_ALL: Final = "all"
_NAMED: Final = 50


def handler(event: Any, _: object) -> dict[str, Any]:
    """The function's entry."""

    def work() -> tuple[dict[str, Any], dict[str, Any]]:
        choice, services = _choice(as_object(event)), _services()
        objects = BucketObjects(s3_client(), services.settings.given("schema_bucket"))

        def announce(findings: Findings) -> None:
            services.books.raise_alert(_alert(findings, objects.bucket), services.clock(), repeated=True)

        findings = _discovery(services).look(choice, Variables(BucketFile(objects, KEY)), announce)
        answer = {**asdict(findings), "active": len(findings.active), "variables": KEY}
        return answer, answer

    return answered(SERVICE, work)


@cache
def _services() -> Services:
    """The parts, put together by the first call."""
    return Services(load_settings({"profile": "aws"}, aws_needs=NEEDS))


def _discovery(services: Services) -> Discovery:
    from lean_ops.bridge.pubsub_topics import PubSubTopics

    topics = PubSubTopics(os.environ.get("PUBSUB_EMULATOR_HOST") or None)
    deployment = Deployment(services.settings.project, services.settings.given("environment"))
    return Discovery(topics, services.lake, services.shared, deployment, services.clock)


def _choice(event: Mapping[str, Any]) -> Choice:
    project = _text(event, "gcp_project") or os.environ.get(GCP_PROJECT, "")
    if not project:
        raise WrongUseError("no Google Cloud project is given", where=f"event key 'gcp_project' or {GCP_PROJECT}")
    return Choice.of(project, _text(event, "prefix"), _text(event, "label"))


def _text(event: Mapping[str, Any], key: str) -> str:
    value = event.get(key, "")
    if not isinstance(value, str) or len(value) > 255:
        raise WrongUseError("is no text", where=f"event key {key!r}", found=repr(value)[:200], expected="a short text")
    return value


def _alert(findings: Findings, bucket: str) -> Alert:
    """One alert for the same topics, however often they are found."""
    names = ", ".join(findings.added[:_NAMED]) + (", …" if len(findings.added) > _NAMED else "")
    key = hashlib.sha256("\n".join(findings.added).encode()).hexdigest()[:16]
    message = f"{len(findings.added)} topics have no queue yet: {names}. Apply Terraform with s3://{bucket}/{KEY}"
    return Alert(key, _ALL, _KIND, "info", message, float(len(findings.added)))
