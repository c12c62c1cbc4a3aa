"""Schemas to the bucket, and what becomes of them there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from .aws import client, object_or_none, waited_for
from .finding import DeployError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .environment import Environment

_PAUSE_SECONDS: Final = 2.0
_OVERTAKEN: Final = "neither active nor failed: somebody else's upload came after it"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a topic's schema; the reasons if it was refused."""

    topic: str
    words: str
    reasons: tuple[str, ...] = ()
    ok: bool = True

    def __str__(self) -> str:
        return "\n".join([f"{self.topic}: {self.words}", *(f"    {reason}" for reason in self.reasons)])


def files(folder: Path, topics: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """The schema files of these names, else of all topics that have one; DeployError if there is none."""
    there = {file.stem: file for file in sorted(folder.glob("*.json"))}
    unknown = sorted(set(names) - there.keys())
    if unknown:
        raise DeployError(f"{folder} has no schema of {', '.join(unknown)}; it has {', '.join(there) or 'none'}")
    wanted = {topic: file for topic, file in there.items() if topic in (names or topics)}
    if not wanted:
        raise DeployError(f"none of the topics {', '.join(topics) or '(none)'} has a schema in {folder}")
    return wanted


def submit(environment: Environment, schemas: dict[str, Path], seconds: float) -> list[Outcome]:
    """Upload each schema as pending and wait until it was judged."""
    s3, bucket = client("s3", environment.region), environment.buckets["schema_bucket"]
    contents = {topic: file.read_bytes() for topic, file in schemas.items()}
    active = {topic for topic, content in contents.items() if _object(s3, bucket, topic, "active/schema") == content}
    for topic in contents.keys() - active:
        s3.put_object(
            Bucket=bucket, Key=_key(topic, "pending/schema"), Body=contents[topic], ContentType="application/json"
        )
    return [
        Outcome(topic, "is active already") if topic in active else _judged(s3, bucket, topic, content, seconds)
        for topic, content in contents.items()
    ]


def _judged(s3: Any, bucket: str, topic: str, content: bytes, seconds: float) -> Outcome:
    """What is pending goes last, whatever became of it; so its end is what is waited for."""
    try:
        look = partial(_when_judged, s3, bucket, topic, content)
        return waited_for(f"the schema of {topic} to be judged", look, seconds, _PAUSE_SECONDS)
    except DeployError as error:
        remedy = "look at the logs of the function schema_validator, and whether the bucket's events reach EventBridge"
        return Outcome(topic, str(error), (remedy,), ok=False)


def _when_judged(s3: Any, bucket: str, topic: str, content: bytes) -> Outcome | None:
    if _object(s3, bucket, topic, "pending/schema") is not None:
        return None
    if _object(s3, bucket, topic, "active/schema") == content:
        return Outcome(topic, "is active")
    if _object(s3, bucket, topic, "failed/schema") != content:
        return Outcome(topic, _OVERTAKEN, ok=False)
    told = _object(s3, bucket, topic, "failed/error")
    return Outcome(topic, "was refused; the active schema, if there is one, stays in force", _reasons(told), ok=False)


def _reasons(content: bytes | None) -> tuple[str, ...]:
    return tuple(_reason(error) for error in json.loads(content or b"{}").get("errors", []))


def _reason(error: dict[str, str | None]) -> str:
    parts = [f"{error.get('path')}: {error.get('message')}"]
    parts += [f"{word} {error[word]}" for word in ("found", "expected") if error.get(word) is not None]
    return "; ".join(parts)


def _object(s3: Any, bucket: str, topic: str, name: str) -> bytes | None:
    return object_or_none(s3, bucket, _key(topic, name))


def _key(topic: str, name: str) -> str:
    return f"schemas/{topic}/{name}.json"
