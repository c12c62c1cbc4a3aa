"""EventBridge rules that do something: events of S3 and Glue reach functions and topics.

moto keeps rules and their targets and calls nobody. Here a new object in a bucket that a rule names, and the end of a
job run, become events; who they are for is what the rules say. What differs: objects are found by looking, and of
two uploads of one key in half a second only the newer is seen.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from moto.events.models import EventPattern
from tests.aws_local.cloud_place import Place
from tests.servers.server import REGION

_LOOK_AGAIN_SECONDS: Final = 0.5
_PLACEHOLDER: Final = re.compile(r"<([A-Za-z0-9_-]+)>")
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that is on, and its targets."""

    pattern: Document
    targets: tuple[Document, ...]

    def wants(self, event: Document) -> bool:
        """Whether an event is for its targets."""
        return bool(EventPattern(None, self.pattern).matches_event(event))

    @property
    def buckets(self) -> tuple[str, ...]:
        """The buckets whose objects it asks for, each by its full name."""
        if self.pattern.get("source") != ["aws.s3"]:
            return ()
        names = self.pattern.get("detail", {}).get("bucket", {}).get("name", [])
        return tuple(name for name in names if isinstance(name, str))


@dataclass
class Events:
    """The rules of the cloud's default bus."""

    place: Place
    _seen: dict[tuple[str, str], str] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        """Look for new objects from now on."""
        names = ("events", "lambda", "sns", "s3")
        self._rules_of, self._functions, self._topics, self._s3 = (self.place.client(name) for name in names)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Nothing is told any more when this returns."""
        self._over.set()
        self._thread.join(30)

    def tell(self, source: str, kind: str, detail: Document) -> None:
        """An event to everybody whose rule wants it."""
        self._tell(self._rules(), source, kind, detail)

    def _rules(self) -> list[Rule]:
        found = []
        for rule in self._rules_of.list_rules()["Rules"]:
            if rule.get("State") == "ENABLED" and "EventPattern" in rule:
                targets = self._rules_of.list_targets_by_rule(Rule=rule["Name"])["Targets"]
                found.append(Rule(json.loads(rule["EventPattern"]), tuple(targets)))
        return found

    def _tell(self, rules: list[Rule], source: str, kind: str, detail: Document) -> None:
        event = {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": kind,
            "source": source,
            "account": "123456789012",
            "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "region": REGION,
            "resources": [],
            "detail": detail,
        }
        for rule in rules:
            if rule.wants(event):
                for target in rule.targets:
                    self._deliver(target, event)

    def _deliver(self, target: Document, event: Document) -> None:
        arn, text = target["Arn"], _input_of(target, event)
        self.place.say(f"events: {event['detail-type']} to {arn}")
        if ":lambda:" in arn:
            self._functions.invoke(FunctionName=arn, InvocationType="Event", Payload=text.encode())
        elif ":sns:" in arn:
            self._topics.publish(TopicArn=arn, Message=text)
        else:
            raise AssertionError(f"no rule of ours has such a target: {arn}")

    # objects

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_AGAIN_SECONDS):
            try:
                self._look()
            except Exception as error:  # the next look may be luckier, and the log has it
                self.place.say(f"events: {type(error).__name__}: {error}")

    def _look(self) -> None:
        rules = self._rules()
        for bucket in {bucket for rule in rules for bucket in rule.buckets}:
            there = dict(self._objects(bucket))
            for key in [known for known in self._seen if known[0] == bucket and known not in there]:
                del self._seen[key]
            for (_, key), version in there.items():
                if self._seen.get((bucket, key)) != version:
                    self._seen[bucket, key] = version
                    detail = {"bucket": {"name": bucket}, "object": {"key": key}, "requester": "somebody"}
                    self._tell(rules, "aws.s3", "Object Created", detail)

    def _objects(self, bucket: str) -> Iterator[tuple[tuple[str, str], str]]:
        for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for one in page.get("Contents", ()):
                yield (bucket, one["Key"]), f"{one['ETag']} {one['LastModified']}"


def _input_of(target: Document, event: Document) -> str:
    """What a target is sent: the event itself, or a text with parts of it in their places."""
    transformer = target.get("InputTransformer")
    if transformer is None:
        return json.dumps(event)
    parts = {name: _part(path, event) for name, path in transformer.get("InputPathsMap", {}).items()}
    return _PLACEHOLDER.sub(lambda found: json.dumps(parts[found[1]]), transformer["InputTemplate"])


def _part(path: str, event: Document) -> Any:
    """`$.detail.object.key` of an event; None if it has no such part."""
    value: Any = event
    for name in path.removeprefix("$.").split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
