"""`run`: plan, then act; `--explain` stops after the plan."""

from __future__ import annotations

import re
from contextlib import closing, suppress
from dataclasses import asdict
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape

from lean_ops.entrypoints.context import App, app_of
from lean_ops.entrypoints.stopping import stoppable
from lean_ops.model.errors import LeanOpsError, WrongUseError
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lean_ops.model.batch import Counts
    from lean_ops.operate.plan import HopPlan, PlannedBatch, RunPlan
    from lean_ops.operate.run import TopicOutcome

_DURATION: Final = re.compile(r"([0-9]{1,6})([smh])")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600}


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("run")(run)


def run(
    ctx: typer.Context,
    topics: Annotated[list[str] | None, typer.Argument(help="Topics to process; all when none is given.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the plan and change nothing.")] = False,
    every: Annotated[str | None, typer.Option(help="Repeat after this time (90s, 15m, 1h) until stopped.")] = None,
    master: Annotated[str | None, typer.Option(help="Spark master address, instead of the setting.")] = None,
) -> None:
    """Move what is new from RAW to Standardized, topic by topic, each exactly once."""
    call, wanted = app_of(ctx), [parse_topic(topic) for topic in topics or ()]
    pause = None if every is None else _seconds(every)
    if pause and (explain or call.console.as_json):
        raise WrongUseError("--every goes neither with --explain nor with --json: they print one answer")
    call.flags["spark_master"] = master
    services = call.services_with_lake()
    if explain:
        _show_plan(call, services.planner.plan(wanted))
        return
    with stoppable(), closing(call):
        if pause is None:
            _cycle(call, wanted, once=True)
        else:
            _repeat(call, wanted, pause)


def _seconds(text: str) -> int:
    """A time like 90s, 15m or 1h; WrongUseError if it is none or no sensible one."""
    found = _DURATION.fullmatch(text)
    seconds = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 1 <= seconds <= 24 * 3600:
        raise WrongUseError("not a time to wait", where="--every", found=repr(text), expected="1s to 24h, like 15m")
    return seconds


def _repeat(call: App, wanted: Sequence[str], pause: int) -> None:
    """One cycle after another until asked to stop; a topic that fails is told and tried again in the next."""
    while True:
        began = monotonic()
        try:
            with suppress(typer.Exit):
                _cycle(call, wanted)
            sleep(max(0.0, pause - (monotonic() - began)))
        except KeyboardInterrupt as asked:  # batches tell of themselves, as a LeanOpsError
            call.console.say(f"stopped between two cycles by {asked}; nothing was begun")
            return


def _cycle(call: App, wanted: Sequence[str], once: bool = False) -> None:
    services = call.services
    if services.schemas.open_activations():
        services.submissions.finish_interrupted(services.clock())
    plan = services.planner.plan(wanted)
    if plan.work:
        if once:
            services.sessions.expect_only(plan.batch_sizes, plan.largest_table)
        _execute(call, plan)
    else:
        _nothing_new(call, plan)


def _show_plan(call: App, plan: RunPlan) -> None:
    call.console.rows("plan", plan_rows(plan))


def plan_rows(plan: RunPlan) -> list[dict[str, Any]]:
    """The plan as rows: one per batch, and one for each topic without any."""
    return [
        {"topic": topic.topic, **row}
        for topic in plan.topics
        for row in ([row for hop in topic.hops for row in _hop_rows(hop)] or [_no_batch(topic.summary, topic.waiting)])
    ]


def _hop_rows(hop: HopPlan) -> list[dict[str, Any]]:
    """A hop's batches, what can't be told before the hop ahead of it is done, and what is wrong."""
    rows = [_batch_row(planned) for planned in hop.batches]
    if hop.follows:
        rows.append(_no_batch("process what the hop before brings", None, str(hop.zone)))
    if hop.problem is not None:
        rows.append(_no_batch(f"can't be planned: {hop.problem}", None, str(hop.zone)))
    return rows


def _batch_row(planned: PlannedBatch) -> dict[str, Any]:
    batch = planned.batch
    return {
        "plan": "resume" if planned.resumes else "process",
        "records": planned.records,
        "zone": str(batch.zone),
        "from_snapshot": None if batch.from_snapshot is None else str(batch.from_snapshot),
        "to_snapshot": str(batch.to_snapshot),
        "batch_id": batch.batch_id,
    }


def _no_batch(words: str, records: int | None, zone: str | None = None) -> dict[str, Any]:
    nothing = dict.fromkeys(("from_snapshot", "to_snapshot", "batch_id"))
    return {"plan": words, "records": records, "zone": zone, **nothing}


def _nothing_new(call: App, plan: RunPlan) -> None:
    if call.console.as_json:
        call.console.document({"run_id": None, "topics": [], "waiting": plan.waiting_rows()})
        return
    call.console.say(f"nothing new to process: {len(plan.topics)} topics looked at")
    say_waiting(call, plan)


def say_waiting(call: App, plan: RunPlan) -> None:
    """A line for each topic whose data waits behind a shut gate."""
    for topic in plan.shut[:20]:
        call.console.say(f"{topic.topic}: skipped, {escape(topic.gate.reason)}; {topic.waiting} records wait in RAW")
    if len(plan.shut) > 20:
        call.console.say(f"… and {len(plan.shut) - 20} more topics wait; `lean-ops status` lists them")


def _execute(call: App, plan: RunPlan) -> None:
    call.console.say(f"{len(plan.work)} of {len(plan.topics)} topics have something to do{_until_spark(plan)}")
    run_id, outcomes = execute(call, plan)
    _watch(call, plan, outcomes)
    say_waiting(call, plan)
    if call.console.as_json:
        topics = [asdict(outcome) for outcome in outcomes]
        call.console.document({"run_id": run_id, "topics": topics, "waiting": plan.waiting_rows()})
    failed = [outcome for outcome in outcomes if outcome.status == "FAILED"]
    if failed:
        call.console.fault(f"{len(failed)} of {len(outcomes)} topics failed; `lean-ops history` has the attempts")
        raise typer.Exit(1)


def _watch(call: App, plan: RunPlan, outcomes: Sequence[TopicOutcome]) -> None:
    """Tell of what the run leaves waiting and of new drift; that it can't be told must not hide how the run went."""
    left = {outcome.topic for outcome in outcomes if outcome.status != "SUCCEEDED"}
    try:
        call.services.watch().after_run([topic.topic for topic in plan.topics], left)
    except LeanOpsError as error:
        call.console.fault(f"what the run leaves could not be looked at: {error}")


def _until_spark(plan: RunPlan) -> str:
    """A word about the wait, if there will be one: Spark starts with the first batch that has records."""
    has_records = any(hop.records for topic in plan.work for hop in topic.hops)
    return "; starting Spark" if has_records else ""


def execute(call: App, plan: RunPlan) -> tuple[str, list[TopicOutcome]]:
    """Carry a plan out, a line for each topic as it is done; the run's id and outcomes."""
    from lean_ops.entrypoints.logs import log_into

    log_into(call.services.settings.logs_dir)
    current = call.services.new_run()
    outcomes: list[TopicOutcome] = []
    of = len(plan.work)
    with stoppable():
        for outcome in current.execute(plan):
            outcomes.append(outcome)
            call.console.say(f"{len(outcomes)}/{of} {escape(outcome_line(outcome))}")
    return current.run_id, outcomes


def outcome_line(outcome: TopicOutcome) -> str:
    """A topic's outcome in a line."""
    books = "; ".join(
        words
        for zone, of in (("standardized", _standardized_words), ("curated", _curated_words))
        if (words := of([batch.counts for batch in outcome.batches if batch.zone == zone]))
    )
    if outcome.status == "SUCCEEDED":
        return f"{outcome.topic}: {books or 'nothing new'}"
    return f"{outcome.topic}: {outcome.status.lower()}: {outcome.reason}" + (f" (done: {books})" if books else "")


def _standardized_words(counts: Sequence[Counts]) -> str:
    if not counts:
        return ""
    return (
        f"{sum(c.records_in for c in counts)} in = {sum(c.records_out for c in counts)} standardized"
        f" + {sum(c.duplicates for c in counts)} duplicates + {sum(c.errors for c in counts)} errors"
    )


def _curated_words(counts: Sequence[Counts]) -> str:
    if not counts:
        return ""
    return (
        f"{sum(c.records_in for c in counts)} in = {sum(c.inserted for c in counts)} new"
        f" + {sum(c.updated for c in counts)} updated + {sum(c.superseded for c in counts)} superseded"
        f" + {sum(c.errors for c in counts)} errors in curated"
    )
