"""The gates of a group of topics and whether anything is new for them: `{"topics": ["events", "orders"]}`.

Told by the registry, the checkpoints and the tables' snapshots, as `lean-ops run --explain` tells it. The answer has
the lists that the state machine chooses by: `open`, `shut`, `standardize`, `curate`; and a line for each topic.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from lean_ops.aws.environment import DATABASE_PREFIX
from lean_ops.entrypoints.lambdas.asked import answered, state, topics_asked
from lean_ops.model.tables import Names
from lean_ops.operate.group import group_document, plan_group

if TYPE_CHECKING:
    from lean_ops.lake.reader import CatalogReader

SERVICE: Final = "check-schema"
CATALOG: Final = "LEAN_OPS_CATALOG"


def handler(event: Any, _: object) -> dict[str, Any]:
    """The function's entry."""

    def work() -> tuple[dict[str, Any], dict[str, Any]]:
        topics = topics_asked(event)
        names = Names(os.environ.get(DATABASE_PREFIX, ""))
        answer = group_document(plan_group(_catalog(), names, state(), topics))
        counts = {name: len(answer[name]) for name in ("topics", "shut", "standardize", "curate")}
        return answer, counts

    return answered(SERVICE, work)


@cache
def _catalog() -> CatalogReader:
    """Glue is read with boto3 alone; any other catalog needs pyiceberg, and this function as an image."""
    if os.environ.get(CATALOG, "glue") != "glue":
        from lean_ops.settings import load_settings
        from lean_ops.wiring import Services

        needs = ("environment", "warehouse")
        return Services(load_settings({"profile": "aws"}, aws_needs=needs)).lake.file
    from lean_ops.aws.clients import glue_client, s3_client
    from lean_ops.aws.glue_tables import GlueTables

    return GlueTables(glue_client(), s3_client())
