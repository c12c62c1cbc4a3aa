"""The whole environment on this machine, without an account: `make aws-local`.

A local AWS is started in a folder of its own, the real root module is applied to it, three topics get schemas and
messages, and the master state machine brings them through. What came out is printed, and where to look; then it stays
until Ctrl-C, takes everything down and removes the folder. With --once it does not stay.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.aws_local.stage import Stage, on_stage, wait_until  # noqa: E402  found by the line before
from tests.aws_local.stage_books import StageBooks  # noqa: E402
from tests.aws_local.stage_story import FULL, STANDARDIZED_ONLY, TOPICS, WITHOUT_SCHEMA, StageStory  # noqa: E402

from lean_ops.model.errors import LeanOpsError  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

_PATIENCE_SECONDS: Final = 300.0
_SHARES: Final = {FULL: 0.5, STANDARDIZED_ONLY: 0.3, WITHOUT_SCHEMA: 0.2}
_LEDGER: Final = ("zone", "records_in", "inserted", "updated", "duplicates", "superseded", "errors", "balanced")


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when all went well, 1 with the reason on stderr, 130 when it was stopped before it was ready."""
    asked = _parser().parse_args(arguments)
    for told in (signal.SIGINT, signal.SIGTERM):  # a shell without a terminal may have turned the first one off
        signal.signal(told, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="lean-ops-aws-local-", dir=asked.folder))
    try:
        tour(folder, asked.messages, stay=not asked.once)
    except (LeanOpsError, AssertionError) as error:
        print(f"aws-local: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("aws-local: stopped", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def tour(folder: Path, messages: int, *, stay: bool) -> None:
    """Everything from the first server to the last."""
    say = _Progress()
    story = StageStory(({topic: max(50, round(messages * share)) for topic, share in _SHARES.items()},))
    with on_stage(folder, TOPICS, say) as stage:
        say("schemas: one to Curated, one that ends at Standardized, none for the third topic")
        outcomes = stage.root.submit_schemas(story.write_schemas(folder / "schemas"), _PATIENCE_SECONDS)
        for outcome in outcomes:
            say(f"  {outcome}")
        _send(stage, story, say)
        say("the master state machine runs; each Glue job starts a Spark")
        done = stage.execute("master")
        say(f"it ended as {done['status']}, groups of topics: {stage.groups(done)}")
        _show(stage)
        if stay:
            _show_where_to_look(stage)
            _wait_for_ctrl_c()
        say("terraform destroy, then the servers stop")
        stage.root.destroy()
    say("nothing is left")


def _send(stage: Stage, story: StageStory, say: _Progress) -> None:
    for topic in TOPICS:
        bodies = story.bodies(topic, 0)
        stage.send(topic, bodies)
        say(f"{len(bodies)} messages, faults of eighteen kinds among them, sent to the queue of {topic}")
    expected = sum(map(len, (story.bodies(topic, 0) for topic in TOPICS)))

    def arrived() -> int:
        rows = StageBooks(stage).rows(TOPICS)
        return sum(rows[topic]["raw"] + rows[topic]["dlq_errors"] for topic in TOPICS)

    say("SQS, functions and Firehose bring them to RAW and to the dead letters")
    wait_until(lambda: arrived() >= expected, _PATIENCE_SECONDS, stage.said)


# what came out


def _show(stage: Stage) -> None:
    books = StageBooks(stage)
    rows = books.rows(TOPICS)
    print("\nrows of the tables")
    _print_table(["topic", *rows[FULL]], [[topic, *map(str, rows[topic].values())] for topic in TOPICS])
    print("\nthe ledger (ops_db.reconciliation_log): of each batch, what became of its records")
    lines = [[topic, *(str(line[name]) for name in _LEDGER)] for topic in TOPICS for line in books.ledger(topic)]
    _print_table(["topic", *_LEDGER], lines)
    print("\ncheckpoints (DynamoDB)")
    _print_table(["hop", "has read to snapshot"], [list(each) for each in sorted(books.checkpoints().items())])


def _print_table(head: list[str], lines: list[list[str]]) -> None:
    widths = [max(len(line[at]) for line in [head, *lines]) for at in range(len(head))]
    for line in [head, *lines]:
        print("  " + "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def _show_where_to_look(stage: Stage) -> None:
    file = stage.folder / "environment.sh"
    text = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in sorted(stage.environ().items()))
    file.write_text(text, encoding="utf-8")
    program = Path(sys.executable).with_name("lean-ops")
    machines, queues = stage.outputs["state_machine_arns"], stage.outputs["queue_urls"]
    print(f"""
where to look
  AWS but S3     {stage.cloud.url}
  S3             {stage.seaweed.url}
  what happened  {stage.folder}/cloud/what-happened.log
  functions      {stage.folder}/cloud/functions/NAME.log
  jobs           {stage.folder}/cloud/jobs/NAME/RUN/stderr
  Terraform      {stage.root.folder}/infra, {stage.root.folder}/terraform.log

in another shell
  . {file}
  {program} --profile aws status
  {program} --profile aws errors {FULL} --limit 3
  {program} --profile aws query "SELECT event_type, count(*) FROM curated.{FULL} GROUP BY 1"
  {program} --profile aws reconcile --recount
  aws stepfunctions list-executions --state-machine-arn {machines["master"]}
  aws stepfunctions start-execution --state-machine-arn {machines["master"]} --input '{{}}'
  aws sqs send-message --queue-url {queues[FULL]} --message-body '{{}}'
  aws s3 ls --recursive s3://{stage.outputs["iceberg_bucket"]}/warehouse/
  aws glue get-job-runs --job-name {stage.outputs["glue_job_names"]["standardized"]}

Ctrl-C takes everything down.""")  # noqa: S608  a command to type, not one that is run


def _wait_for_ctrl_c() -> None:
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print()


class _Progress:
    """A line for each step, with the time since the first."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, words: str) -> None:
        print(f"{time.monotonic() - self._began:6.0f} s  {words}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=600, metavar="N", help="for all topics together")
    parser.add_argument("--folder", type=Path, help="where the folder is made; else where this machine has its own")
    parser.add_argument("--once", action="store_true", help="take everything down at once, and wait for nobody")
    return parser


if __name__ == "__main__":
    sys.exit(main())
