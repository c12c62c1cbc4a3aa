"""The topics whose gate is open, in groups for the state machine's Distributed Map.

The same registry always gives the same groups, by name. Their size is `LEAN_OPS_GROUP_SIZE`, or the event's
`group_size`; with 1 the machine takes topic by topic.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Final

from lean_ops.entrypoints.lambdas.asked import GROUP_LIMIT, answered, number_asked, state
from lean_ops.model.errors import TerminalError

SERVICE: Final = "fetch-active-topics"
GROUP_SIZE: Final = "LEAN_OPS_GROUP_SIZE"
_USUAL_SIZE: Final = "25"
_SIZES: Final = range(1, GROUP_LIMIT + 1)
_MOST_BYTES: Final = 240 * 1024  # of the 256 KiB that one state hands to the next


def handler(event: Any, _: object) -> dict[str, Any]:
    """The function's entry."""

    def work() -> tuple[dict[str, Any], dict[str, Any]]:
        size = number_asked(event, "group_size", _SIZES) or number_asked(_variables(), GROUP_SIZE, _SIZES) or 1
        items = state().items()
        active = sorted(topic for topic, item in items.items() if item.processing_enabled)
        groups = grouped(active, size)
        counts = {"topics": len(active), "shut": len(items) - len(active)}
        answer = {"groups": groups, **counts}
        _refuse_too_large(answer)
        return answer, {**counts, "groups": len(groups), "group_size": size}

    return answered(SERVICE, work)


def grouped(topics: Sequence[str], size: int) -> list[dict[str, list[str]]]:
    """The topics in their order, so many to a group."""
    return [{"topics": list(topics[start : start + size])} for start in range(0, len(topics), size)]


def _variables() -> dict[str, Any]:
    """The function's own setting, read as an event is."""
    text = os.environ.get(GROUP_SIZE) or _USUAL_SIZE
    return {GROUP_SIZE: int(text) if text.isdecimal() else text}


def _refuse_too_large(answer: dict[str, Any]) -> None:
    size = len(json.dumps(answer))
    if size > _MOST_BYTES:
        raise TerminalError(
            "there are more topics than a state machine can be handed at once",
            found=f"{answer['topics']} topics, {size} bytes",
            expected=f"at most {_MOST_BYTES} bytes",
            remedy="Spread the topics over two environments.",
        )
