"""The job that builds topics again: `python -m lean_ops.entrypoints.jobs.rebuild --topics '["events"]'`.

One topic after the other, and one that fails stops no other. What is built is published: the difference is in the
document that the job prints at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from lean_ops.entrypoints.jobs import job
from lean_ops.model.errors import WrongUseError

if TYPE_CHECKING:
    from lean_ops.entrypoints.jobs.job import Order
    from lean_ops.operate.rebuild_difference import Difference
    from lean_ops.wiring import Services


def rebuild_topics(services: Services, order: Order) -> dict[str, Any]:
    """Build the topics again; each one's outcome."""
    if not order.topics:
        raise WrongUseError("names no topic", where="--topics", expected="the topics to build again")
    rebuilder = services.rebuilder()
    outcomes = [rebuilder.rebuild(topic, _publish).document() for topic in order.topics]
    return {"run_id": rebuilder.run_id, "topics": outcomes}


def _publish(difference: Difference) -> bool:
    structlog.get_logger("lean_ops.job").info("built", difference=difference.document())
    return True


def main() -> None:
    """The job, with the arguments of this process."""
    job.carry_out(rebuild_topics)


if __name__ == "__main__":
    main()
