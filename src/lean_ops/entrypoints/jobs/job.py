"""A Spark job for some topics: the same code on Glue, on EMR, by `spark-submit`, and as a plain Python program.

Its arguments are the topics and the profile; all else are settings, which come from `lean-ops.toml` beside it or from
variables. Each topic's outcome is in `ops_db.job_run_history`, and in the document that the job prints at its end.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, Final, get_args

import structlog

from lean_ops.entrypoints.logs import log_to_stderr
from lean_ops.entrypoints.stopping import stoppable
from lean_ops.model.batch import Zone
from lean_ops.model.errors import LeanOpsError, WrongUseError
from lean_ops.model.topic import parse_topic
from lean_ops.operate.run import TopicOutcome
from lean_ops.settings import Settings, load_settings
from lean_ops.wiring import Services

_PROFILES: Final = get_args(Settings.model_fields["profile"].annotation)
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Order:
    """What a job is asked for; without topics it is all that there are."""

    topics: tuple[str, ...]
    profile: str


def ordered(arguments: Sequence[str]) -> Order:
    """The job's own arguments; Glue adds others of its own, which are none of ours."""
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False, add_help=False)
    parser.add_argument("--topics", default="[]")
    parser.add_argument("--profile", choices=_PROFILES, default="aws")
    try:
        found, of_others = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        raise WrongUseError("can't be understood", where="the job's arguments", found=str(error)) from error
    if of_others:
        structlog.get_logger("lean_ops.job").info("arguments of others", arguments=of_others)
    return Order(_topics(found.topics), found.profile)


def _topics(text: str) -> tuple[str, ...]:
    """A JSON list, as a state machine writes it, or names with commas between them."""
    try:
        names = json.loads(text) if text.lstrip().startswith("[") else text.split(",")
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        expected = 'a JSON list such as ["events", "orders"], or events,orders'
        raise WrongUseError("is not a list of topics", where="--topics", found=repr(text)[:200], expected=expected)
    return tuple(dict.fromkeys(parse_topic(name.strip()) for name in names))


def run_job(services: Services, order: Order, zone: Zone) -> dict[str, Any]:
    """Take what is new for these topics into a zone; each topic's outcome. One that fails stops no other."""
    plan = services.plan_topics(order.topics).only(zone)
    outcomes: list[TopicOutcome] = []
    run_id = None
    if plan.work:
        services.sessions.expect_only(plan.batch_sizes, plan.largest_table)
        current = services.new_run()
        run_id = current.run_id
        outcomes.extend(current.execute(plan))
    return {
        "run_id": run_id,
        "zone": str(zone),
        "topics": [asdict(outcome) for outcome in outcomes],
        "waiting": plan.waiting_rows(),
    }


def main(zone: Zone, arguments: Sequence[str] | None = None) -> None:
    """The job that takes topics into a zone."""
    carry_out(lambda services, order: run_job(services, order, zone), arguments)


def carry_out(work: Callable[[Services, Order], dict[str, Any]], arguments: Sequence[str] | None = None) -> None:
    """Do a job and print its document; an end with words, and exit code 1, if any topic failed.

    A good end is no `sys.exit`: Glue takes every one of those for a failure.
    """
    log_to_stderr()
    try:
        order = ordered(sys.argv[1:] if arguments is None else arguments)
        with closing(Services(load_settings({"profile": order.profile}), notice=_notice)) as services, stoppable():
            report = work(services, order)
    except LeanOpsError as error:
        sys.exit("; ".join(line.strip() for line in str(error).splitlines()))
    print(json.dumps(report, default=str), flush=True)
    failed = [topic for topic in report["topics"] if topic["status"] == "FAILED"]
    if failed:
        sys.exit(in_words(failed, len(report["topics"])))


def in_words(failed: Sequence[dict[str, Any]], of: int) -> str:
    """What failed, in a line that fits where Glue shows it."""
    shown = "; ".join(f"{topic['topic']}: {topic['reason']}"[:300] for topic in failed[:_SHOWN])
    more = f"; and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
    return f"{len(failed)} of {of} topics failed: {shown}{more}"


def _notice(words: str) -> None:
    structlog.get_logger("lean_ops.job").info(words)
