"""What the support functions have in common: an event is read with suspicion, an answer or an error is logged."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools.logging import Logger

from lean_ops.aws.environment import Deployment
from lean_ops.model.errors import LeanOpsError, WrongUseError
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from lean_ops.state.dynamodb import DynamoStateStore

GROUP_LIMIT: Final = 200
_LEASE_SECONDS: Final = 300
_TOLD: Final = ("where", "found", "expected", "remedy")


def answered(service: str, work: Callable[[], tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """The answer that the work gives beside what is logged of it; an error of ours is logged and passed on.

    The state machine tells errors apart by the names of their classes: a TransientError is worth another attempt.
    """
    log = Logger(service=service)
    try:
        answer, summary = work()
    except LeanOpsError as error:
        log.exception(error.what, extra={name: getattr(error, name) for name in _TOLD})
        raise
    log.info("answered", extra=summary)
    return answer


@cache
def state() -> DynamoStateStore:
    """The state store of this function's environment, without the settings of all the rest: imports take time."""
    from lean_ops.aws.clients import dynamodb_client
    from lean_ops.state.dynamodb import DynamoStateStore
    from lean_ops.state.dynamodb_tables import DynamoTables

    deployment = Deployment.of(os.environ)
    tables = DynamoTables.of(deployment.project, deployment.environment)
    return DynamoStateStore(dynamodb_client(), tables, _LEASE_SECONDS)


# events


def as_object(event: Any) -> Mapping[str, Any]:
    """The event, which must be a JSON object."""
    if not isinstance(event, Mapping):
        raise _wrong("the event", "is not an object", event, "a JSON object")
    return event


def topics_asked(event: Any, most: int = GROUP_LIMIT) -> list[str]:
    """The topics that an event names, each once; WrongUseError if there are none or one can't be a topic."""
    topics = topics_or_all(event, most)
    if not topics:
        raise _wrong("event key 'topics'", "names no topic", as_object(event).get("topics"), "a list of topics")
    return topics


def topics_or_all(event: Any, most: int = GROUP_LIMIT) -> list[str]:
    """The topics that an event names; none if it asks for all by leaving them out."""
    given = as_object(event).get("topics")
    if given is None:
        return []
    if not isinstance(given, Sequence) or isinstance(given, str | bytes) or len(given) > most:
        raise _wrong("event key 'topics'", "is not a list of topics", given, f"a list of at most {most} names")
    return list(dict.fromkeys(_topic(name) for name in given))


def _topic(name: Any) -> str:
    if not isinstance(name, str) or not _is_topic(name):
        raise _wrong("event key 'topics'", "holds what is not a topic's own name", name, "a name such as events")
    return name


def _is_topic(name: str) -> bool:
    try:
        return parse_topic(name) == name
    except WrongUseError:
        return False


def number_asked(event: Any, key: str, allowed: range) -> int | None:
    """A number that an event may have; WrongUseError if it is no number, or not an allowed one."""
    value = as_object(event).get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
        expected = f"a whole number from {allowed.start} to {allowed.stop - 1}"
        raise _wrong(f"event key {key!r}", "can't be", value, expected)
    return value


def flag_asked(event: Any, key: str, default: bool) -> bool:
    """Whether an event wants something; WrongUseError if it says neither yes nor no."""
    value = as_object(event).get(key, default)
    if not isinstance(value, bool):
        raise _wrong(f"event key {key!r}", "can't be", value, "true or false")
    return value


def _wrong(where: str, what: str, found: Any, expected: str) -> WrongUseError:
    return WrongUseError(what, where=where, found=repr(found)[:200], expected=expected)
