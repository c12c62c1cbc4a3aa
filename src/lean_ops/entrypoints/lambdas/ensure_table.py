"""The tables that topics need before a run: RAW and Standardized of each, and those that all share.

`{"topics": ["events"]}`; without topics only the shared ones. Tables that are there stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from lean_ops.entrypoints.lambdas.asked import answered, topics_or_all
from lean_ops.lake.catalog import Lake
from lean_ops.model.errors import LeanOpsError, TransientError
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

SERVICE: Final = "ensure-table"


def handler(event: Any, _: object) -> dict[str, Any]:
    """The function's entry."""

    def work() -> tuple[dict[str, Any], dict[str, Any]]:
        topics = topics_or_all(event)
        lake = _lake()
        lake.ensure_shared()
        ready, failed = _ensure(lake, topics)
        answer = {"ready": ready, "failed": failed, "shared": [str(name) for name in lake.names.shared]}
        return answer, {"ready": len(ready), "failed": failed}

    return answered(SERVICE, work)


@cache
def _lake() -> Lake:
    return Services(load_settings({"profile": "aws"}, aws_needs=("environment", "warehouse"))).lake


def _ensure(lake: Lake, topics: Sequence[str]) -> tuple[list[str], list[dict[str, Any]]]:
    """The topics whose tables are there now, and why those of others are not: one must not stop the rest."""
    ready, failed = [], []
    for topic in topics:
        try:
            lake.ensure_raw(topic)
            lake.ensure_standardized(topic)
        except LeanOpsError as error:
            failed.append({"topic": topic, "transient": isinstance(error, TransientError), "error": str(error)[:500]})
        else:
            ready.append(topic)
    return ready, failed
