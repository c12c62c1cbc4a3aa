"""What an environment costs in a month, from unit prices, a load and the settings: `python scripts/costs.py`.

The prices are list prices of one region as they were known at the date below; look them up before a decision. What is
not a price is counted from what the code does, or is an assumption that says so. docs/costs.md has the output, and a
test holds both together.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REGION: Final = "us-east-1"
DATE: Final = "2025"
DAYS: Final = 30
TOPICS: Final = (10, 100, 700)


@dataclass(frozen=True, slots=True)
class Price:
    """A list price in US dollars for so many units."""

    usd: float
    per: float
    unit: str

    def of(self, units: float) -> float:
        """What so many units cost."""
        return units / self.per * self.usd


PRICES: Final[Mapping[str, Price]] = {
    "glue": Price(0.44, 1, "DPU-hour, by the second, at least a minute a job run"),
    "lambda_calls": Price(0.20, 1e6, "million calls"),
    "lambda_time": Price(0.0000166667, 1, "GB-second on x86_64"),
    "sqs": Price(0.40, 1e6, "million requests of up to 64 KB"),
    "firehose": Price(0.029, 1e9, "GB, each record rounded up to 5 KB"),
    "dynamodb_writes": Price(0.625, 1e6, "million write units, on demand"),
    "dynamodb_reads": Price(0.125, 1e6, "million read units, on demand"),
    "states": Price(0.025, 1e3, "thousand transitions"),
    "s3_storage": Price(0.023, 1e9, "GB and month"),
    "s3_puts": Price(0.005, 1e3, "thousand PUT or LIST requests"),
    "s3_gets": Price(0.0004, 1e3, "thousand GET requests"),
    "metrics": Price(0.30, 1, "custom metric and month"),
    "alarms": Price(0.10, 1, "metric of an alarm and month"),
    "logs": Price(0.50, 1e9, "GB of logs"),
    "kms_calls": Price(0.03, 1e4, "ten thousand calls"),
    "kms_key": Price(1.00, 1, "key and month"),
}


@dataclass(frozen=True, slots=True)
class Load:
    """What comes in, evenly over the day: every topic has something new at every run, which is the dear case."""

    topics: int
    messages_a_day: int = 20_000
    message_bytes: int = 800


@dataclass(frozen=True, slots=True)
class Settings:
    """The variables of infra/ that move the bill, at their defaults."""

    group_size: int = 25
    run_minutes: int = 15
    workers: int = 2
    window_seconds: int = 5

    @property
    def runs(self) -> float:
        """Runs of the master state machine in a month."""
        return DAYS * 24 * 60 / self.run_minutes


# Assumptions, none of them measured on an account.
JOB_START_SECONDS: Final = 60  # Spark's session, our packages, the first look at the catalog
TOPIC_SECONDS: Final = 0.5  # a topic's share of a job, about what docs/performance.md has for a hop
RECORDS_A_SECOND: Final = 10_000
MAINTENANCE_TOPIC_SECONDS: Final = 15  # a topic's tables, a day
POLLERS: Final = 5  # that Lambda keeps on a queue, each with a long poll of 20 s
CALL_SECONDS: Final = 0.1  # of the SQS processor, at half a GB
LOOKS: Final = DAYS * 24 * 4  # of the function health at what waits or drifts, with 2 GB
LOOK_SECONDS: Final = 5
LOOK_TOPIC_SECONDS: Final = 0.05  # three metadata files, sixteen at a time
METRICS_A_TOPIC: Final = 2  # what the SQS processor counts of a topic where nothing is wrong
ALARM_METRICS: Final = 60  # those of modules/observability
PUTS_A_LANDING: Final = 4  # Firehose's commit to a topic's table: data, manifest, list, metadata
LANDINGS_A_DAY: Final = 24 * 60 / 5
PUTS_A_HOP: Final = 12  # two commits, and the topic's share of the shared tables'
GETS_A_HOP: Final = 60
KEPT_DAYS: Final = 365
STORED_SHARE: Final = 0.5  # three zones, each compressed, of the bytes that came in
LOG_BYTES_A_CALL: Final = 500
# The ways through master.asl.json of a run, and of a group that has work in both hops: a transition for each state.
RUN_STATES: Final = (
    *("FindRunning", "IsAnyListed", "FindOldest", "IsOldest", "FetchActiveTopics", "AnyGroups", "ProcessGroups"),
    "AllGroupsTaken",
)
GROUP_STATES: Final = (
    *("CheckSchemaExists", "SchemaGate", "EnsureStandardizedTable", "RunStandardized", "CheckCuratedReady"),
    *("CuratedSchemaChoice", "RunCurated", "GroupOutcome", "SuccessFull"),
)
# Of a topic that has work: an intent and a checkpoint for each hop in transactions of two, lease taken and given back.
WRITE_UNITS_A_TOPIC: Final = 2 * 2 * 4 + 4
READ_UNITS_A_TOPIC: Final = 12


def monthly(load: Load, settings: Settings) -> dict[str, float]:
    """US dollars a month, by what they are paid for."""
    return {
        "Glue, runs": _glue_runs(load, settings),
        "Glue, maintenance": _glue_maintenance(load, settings),
        "Lambda": _lambda(load, settings),
        "SQS": _sqs(load, settings),
        "Firehose": _firehose(load),
        "DynamoDB": _dynamodb(load, settings),
        "Step Functions": _states(load, settings),
        "S3, requests": _s3_requests(load, settings),
        "S3, a year of data": _s3_storage(load),
        "CloudWatch": _cloudwatch(load, settings),
        "KMS": _kms(load, settings),
    }


def _messages(load: Load) -> float:
    return float(load.topics * load.messages_a_day * DAYS)


def _groups(load: Load, settings: Settings) -> int:
    return math.ceil(load.topics / settings.group_size)


def job_seconds(topics: int, load: Load, settings: Settings) -> float:
    """How long a job of so many topics is billed for; never less than a minute."""
    records = topics * load.messages_a_day * settings.run_minutes / (24 * 60)
    return max(60.0, JOB_START_SECONDS + topics * TOPIC_SECONDS + records / RECORDS_A_SECOND)


def _glue_runs(load: Load, settings: Settings) -> float:
    full, rest = divmod(load.topics, settings.group_size)
    seconds = full * job_seconds(settings.group_size, load, settings)
    seconds += job_seconds(rest, load, settings) if rest else 0
    return PRICES["glue"].of(2 * settings.runs * seconds * settings.workers / 3600)


def _glue_maintenance(load: Load, settings: Settings) -> float:
    seconds = _groups(load, settings) * JOB_START_SECONDS + load.topics * MAINTENANCE_TOPIC_SECONDS
    return PRICES["glue"].of(DAYS * seconds * settings.workers / 3600)


def _calls(load: Load, settings: Settings) -> float:
    """Calls of the SQS processor: one for each window in which something came."""
    in_a_window = load.messages_a_day / 86_400 * settings.window_seconds
    return _messages(load) / max(1.0, in_a_window)


def _lambda(load: Load, settings: Settings) -> float:
    calls = _calls(load, settings)
    checks = 3 * settings.runs * _groups(load, settings)
    every_minute = DAYS * 24 * 60
    looks = LOOKS * (LOOK_SECONDS + load.topics * LOOK_TOPIC_SECONDS) * 2.0
    seconds = calls * CALL_SECONDS * 0.5 + checks * 2.0 + every_minute * 2.0 + looks
    return PRICES["lambda_calls"].of(calls + checks + every_minute + LOOKS) + PRICES["lambda_time"].of(seconds)


def _sqs(load: Load, settings: Settings) -> float:
    """Sent, received and deleted by tens at best, by windows else; and polls of queues in which nothing is."""
    batches = max(_messages(load) / 10, _calls(load, settings))
    polls = load.topics * POLLERS * DAYS * 86_400 / 20
    return PRICES["sqs"].of(3 * batches + polls)


def _firehose(load: Load) -> float:
    rounded = math.ceil(load.message_bytes * 1.3 / 5_000) * 5_000
    return PRICES["firehose"].of(_messages(load) * rounded)


def _dynamodb(load: Load, settings: Settings) -> float:
    """A message's delivery is read and written once; a topic's leases and checkpoints at each run."""
    turns = load.topics * settings.runs
    writes = _messages(load) + turns * WRITE_UNITS_A_TOPIC
    reads = _messages(load) + turns * READ_UNITS_A_TOPIC
    return PRICES["dynamodb_writes"].of(writes) + PRICES["dynamodb_reads"].of(reads)


def _states(load: Load, settings: Settings) -> float:
    each_run = len(RUN_STATES) + len(GROUP_STATES) * _groups(load, settings)
    return PRICES["states"].of(settings.runs * each_run)


def _s3_requests(load: Load, settings: Settings) -> float:
    landings = min(LANDINGS_A_DAY, load.messages_a_day) * DAYS * load.topics
    hops = 2 * settings.runs * load.topics
    puts = landings * PUTS_A_LANDING + hops * PUTS_A_HOP
    gets = hops * GETS_A_HOP + LOOKS * load.topics * 3
    return PRICES["s3_puts"].of(puts) + PRICES["s3_gets"].of(gets)


def _s3_storage(load: Load) -> float:
    return PRICES["s3_storage"].of(load.topics * load.messages_a_day * KEPT_DAYS * load.message_bytes * STORED_SHARE)


def _cloudwatch(load: Load, settings: Settings) -> float:
    told = PRICES["metrics"].of(load.topics * METRICS_A_TOPIC) + PRICES["alarms"].of(ALARM_METRICS)
    return told + PRICES["logs"].of(_calls(load, settings) * LOG_BYTES_A_CALL)


def _kms(load: Load, settings: Settings) -> float:
    """Data keys are kept: an hour by a queue, for its sender and its reader; by the bucket; some by each job."""
    calls = load.topics * 2 * 24 * DAYS + 2 * settings.runs * _groups(load, settings) * 50
    return PRICES["kms_key"].of(1) + PRICES["kms_calls"].of(calls)


# as the document has it


def price_table() -> str:
    """The prices."""
    lines = [f"| price ({REGION}, {DATE}) | US dollars | for |", "|---|---|---|"]
    lines += [f"| {name.replace('_', ' ')} | {price.usd:g} | {price.unit} |" for name, price in PRICES.items()]
    return "\n".join(lines)


def cost_table(columns: Mapping[str, tuple[Load, Settings]]) -> str:
    """Costs by what they are paid for, a column for each case."""
    costs = {title: monthly(load, settings) for title, (load, settings) in columns.items()}
    lines = [f"| US dollars a month | {' | '.join(costs)} |", f"|---|{'---:|' * len(costs)}"]
    items = next(iter(costs.values()))
    lines += [f"| {item} | {' | '.join(_rounded(cost[item]) for cost in costs.values())} |" for item in items]
    totals = " | ".join(f"**{_rounded(sum(cost.values()))}**" for cost in costs.values())
    return "\n".join([*lines, f"| **together** | {totals} |"])


def _rounded(usd: float) -> str:
    return f"{usd:,.0f}" if usd >= 10 else f"{usd:.1f}"


def tables() -> dict[str, str]:
    """All tables of the document, by their marks in it."""
    usual = Settings()
    sizes = {f"{topics} topics": (Load(topics), usual) for topics in TOPICS}
    alone = {f"{topics} topics": (Load(topics), replace(usual, group_size=1)) for topics in TOPICS}
    most = Load(TOPICS[-1])
    knobs = {
        "as above": (most, usual),
        "a run an hour": (most, replace(usual, run_minutes=60)),
        "window of 60 s": (most, replace(usual, window_seconds=60)),
        "groups of 100": (most, replace(usual, group_size=100)),
        "both and the hour": (most, replace(usual, run_minutes=60, window_seconds=60, group_size=100)),
    }
    quiet = {"700 topics, 200 messages a day each": (replace(most, messages_a_day=200), usual)}
    return {
        "prices": price_table(),
        "group size 25": cost_table(sizes),
        "group size 1": cost_table(alone),
        "knobs": cost_table(knobs),
        "quiet": cost_table(quiet),
    }


def in_document(text: str) -> str:
    """A document with its tables made again, each between its marks."""
    for mark, table in tables().items():
        begin, end = f"<!-- costs: {mark} -->\n", "<!-- end -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"the document has no {begin.strip()} … {end}")
        text = f"{before}{begin}\n{table}\n\n{end}{after}"
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, or bring them into the document."""
    from pathlib import Path

    document = Path(__file__).resolve().parent.parent / "docs" / "costs.md"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="into docs/costs.md")
    if parser.parse_args(arguments).write:
        document.write_text(in_document(document.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    print("\n\n".join(f"{mark}:\n\n{table}" for mark, table in tables().items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
