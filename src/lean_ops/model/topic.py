"""Topic names: the one form in which the whole product speaks of a topic."""

from __future__ import annotations

import re
from typing import NewType

from lean_ops.model.errors import WrongUseError

Topic = NewType("Topic", str)

_TOPIC = re.compile(r"[a-z][a-z0-9_]{0,62}")
_RESERVED = frozenset({"dlq", "errors", "parse_errors", "dlq_errors"})
_RESERVED_ENDINGS = ("_latest", "_staging")


def normalise(source_name: str) -> str:
    """The topic-like form of a Pub/Sub or queue name; not yet known to be a valid topic."""
    return source_name.replace("-", "_").replace(".", "_").lower()


def parse_topic(source_name: str) -> Topic:
    """The topic that a source name stands for, or WrongUseError when it can't be one."""
    name = normalise(source_name)
    if not (source_name.isascii() and _TOPIC.fullmatch(name)):
        raise WrongUseError(
            "not a topic name",
            where=f"topic {source_name!r}",
            expected="a letter, then at most 62 letters, digits or '_' ('-' and '.' become '_')",
        )
    if name in _RESERVED or name.endswith(_RESERVED_ENDINGS):
        raise WrongUseError(
            "this name is reserved",
            where=f"topic {source_name!r}",
            expected=f"none of {', '.join(sorted(_RESERVED))} and no ending in {' or '.join(_RESERVED_ENDINGS)}",
        )
    return Topic(name)
