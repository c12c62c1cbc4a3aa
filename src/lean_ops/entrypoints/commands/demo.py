"""`demo`: the whole story on generated data, told act by act through the same code as the other commands."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.markup import escape

from lean_ops.entrypoints.commands.ingest import totals_line
from lean_ops.entrypoints.commands.reading import existing_state, trace_document, trace_lines
from lean_ops.entrypoints.commands.run import execute, say_waiting, waiting_rows
from lean_ops.entrypoints.commands.schema import show_activation
from lean_ops.entrypoints.context import App, app_of
from lean_ops.model.errors import WrongUseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lean_ops.govern.submit import Activation
    from lean_ops.ingest.intake import Report
    from lean_ops.operate.demo import Day
    from lean_ops.wiring import Services

_FOLDER: Final = "demo"
_BRIEF_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LEDGER: Final = """
SELECT topic_name AS topic, zone, sum(records_in)::BIGINT AS records_in, sum(records_out)::BIGINT AS records_out,
       sum(duplicates)::BIGINT AS duplicates, sum(superseded)::BIGINT AS superseded, sum(errors)::BIGINT AS errors,
       bool_and(balanced) AND sum(records_in) = sum(records_out + duplicates + superseded + errors) AS balanced
FROM ops.reconciliation_log WHERE topic_name IN ('events', 'orders', 'readings') GROUP BY ALL ORDER BY topic, zone
"""
_TRY_NEXT: Final = (
    "status",
    "errors orders",
    "drift events",
    "history",
    'query "SELECT event_eventtype, count(*) AS events FROM standardized.events GROUP BY ALL ORDER BY ALL"',
    'query "SELECT orderid, status, amount FROM standardized.orders_latest ORDER BY orderid LIMIT 5"',
)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("demo")(demo)


def demo(ctx: typer.Context) -> None:
    """The whole story on generated data; ends with the ledger and where to look. Can be run again."""
    from lean_ops.operate.demo import TOPICS, two_days

    call = _with_brief_spark(app_of(ctx))
    ctx.call_on_close(call.close)
    _refuse_foreign_topics(call.services, TOPICS)
    now = call.services.clock()
    days = {topic: two_days(topic, now) for topic in TOPICS}
    document = _tell(_Story(call, *({topic: days[topic][day] for topic in TOPICS} for day in (0, 1))))
    if call.console.as_json:
        call.console.document(document)
    _leave(call, document)


def _with_brief_spark(call: App) -> App:
    """The same call, whose Spark spends no time on optimising code that runs once, unless Java's options are set."""
    services = call.services
    if services.loaded.origins["spark_java_options"] != "default":
        return call
    settings = services.settings.model_copy(update={"spark_java_options": _BRIEF_JAVA})
    loaded = services.loaded.model_copy(update={"settings": settings})
    return App(call.console, lambda _: replace(services, loaded=loaded))


def _tell(story: _Story) -> dict[str, Any]:
    """The acts in their order, then what they led to."""
    from lean_ops.operate.demo import Kind

    retried = story.two["orders"].first(Kind.RETRY)
    return {
        "home": str(story.call.services.settings.home),
        "acts": [story.day_one(), story.schemas(), story.run_what_waited(), story.day_two(), story.run_again()],
        "ledger": story.ledger(),
        "trace": story.trace(retried.message_id or "", "orders"),
        "next": story.next_commands(retried.key or ""),
    }


def _refuse_foreign_topics(services: Services, topics: tuple[str, ...]) -> None:
    """WrongUseError if a topic of this home is somebody's own: made-up records could never be taken out again."""
    from lean_ops.ledger.status import topics_of

    home = services.settings.home
    if (home / _FOLDER).is_dir():
        return
    known = topics_of(services.lake.file, services.settings.names, existing_state(services))
    foreign = [topic for topic in topics if topic in known]
    if foreign:
        raise WrongUseError(
            "this home has topics of the demo's names that are not the demo's",
            where=str(home),
            found=", ".join(foreign),
            remedy="Choose another home, like `lean-ops --home .lean-ops-demo demo`.",
        )


def _leave(call: App, document: dict[str, Any]) -> None:
    """Exit 1 if a topic failed or the books do not balance."""
    outcomes = [outcome for act in document["acts"] if "run" in act for outcome in act["run"]["topics"]]
    failed = sorted({outcome["topic"] for outcome in outcomes if outcome["status"] == "FAILED"})
    if failed:
        call.console.fault(f"failed: {', '.join(failed)}; `lean-ops history` has the attempts")
    if failed or not all(row["balanced"] for row in document["ledger"]):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Story:
    """The acts: each is announced in a line, done, and returned as data."""

    call: App
    one: Mapping[str, Day]
    two: Mapping[str, Day]

    def day_one(self) -> dict[str, Any]:
        gates = self.call.services.gate.gates()
        is_first = not any(gates[topic].open for topic in self.one if topic in gates)
        self._announce("1. Day 1: three topics arrive, with a few network retries; all of it lands in RAW as it came.")
        taken = self._take("day1", self.one)
        why = "no topic has a schema yet, so the data waits" if is_first else "an earlier demo has deployed the schemas"
        self._say(f"A run now: {why}.")
        return {"act": 1, "title": "day 1 arrives", "ingested": taken, "run": self._run()}

    def schemas(self) -> dict[str, Any]:
        self._announce("2. The topics' schemas are deployed, which opens their gates.")
        schemas = [
            {"topic": done.topic, "schema_version": done.schema.schema_version, "activated": done.changed}
            for done in map(self._submit, self.one)
        ]
        return {"act": 2, "title": "schemas are deployed", "schemas": schemas}

    def run_what_waited(self) -> dict[str, Any]:
        self._announce("3. Run: what waited is standardized, the first copy of each message only. Spark starts once.")
        return {"act": 3, "title": "what waited is standardized", "run": self._run()}

    def day_two(self) -> dict[str, Any]:
        self._announce(
            "4. Day 2: retries of day 1, corrections, late arrivals, broken and empty payloads, new keys, changed"
            " types, and bodies that are refused at the door."
        )
        return {"act": 4, "title": "day 2 arrives", "ingested": self._take("day2", self.two)}

    def run_again(self) -> dict[str, Any]:
        self._announce("5. Run again: only what is new is read; retries are recognised, new keys become columns.")
        return {"act": 5, "title": "day 2 is standardized", "run": self._run()}

    # what the acts are made of

    def _announce(self, text: str) -> None:
        self._say(f"\n[bold]{escape(text)}[/bold]")

    def _say(self, text: str) -> None:
        self.call.console.say(text)

    def _take(self, name: str, days: Mapping[str, Day]) -> list[dict[str, Any]]:
        folder = self.call.services.settings.home / _FOLDER / name
        folder.mkdir(parents=True, exist_ok=True)
        return [self._take_topic(folder / f"{topic}.jsonl", day) for topic, day in days.items()]

    def _take_topic(self, file: Path, day: Day) -> dict[str, Any]:
        file.write_bytes(day.content)
        report = self._intake(day.topic, file)
        self._say(escape(totals_line(report)))
        self._say(f"  sent: {', '.join(f'{count} {kind}' for kind, count in day.kinds.items())}")
        return {
            "topic": day.topic,
            "sent": {kind.name.lower(): count for kind, count in day.kinds.items()},
            "lines": report.lines,
            "raw": report.raw,
            "dead_letters": dict(sorted(report.dead_letters.items())),
        }

    def _intake(self, topic: str, file: Path) -> Report:
        return self.call.services.intake(topic, topic).take(topic, [str(file)])

    def _submit(self, topic: str) -> Activation:
        """The example schema; if the topic has one already, that one again, which changes nothing."""
        from lean_ops.operate.demo import example_schemas

        services = self.call.services
        content = services.schemas.active(topic) or (example_schemas() / f"{topic}.json").read_bytes()
        activation = services.submissions.submit(topic, content, submitted_by="demo", now=services.clock())
        if not self.call.console.as_json:
            show_activation(self.call.console, activation)
        return activation

    def _run(self) -> dict[str, Any]:
        plan = self.call.services.planner.plan(tuple(self.one))
        run_id, outcomes = execute(self.call, plan) if plan.work else (None, [])
        if not (plan.work or plan.shut):
            self._say("nothing new")
        say_waiting(self.call, plan)
        topics = sorted((asdict(outcome) for outcome in outcomes), key=lambda outcome: str(outcome["topic"]))
        return {"run_id": run_id, "topics": topics, "waiting": waiting_rows(plan)}

    # what the story ends with

    def ledger(self) -> list[dict[str, Any]]:
        """The books of everything that ever came in, per topic and zone."""
        from lean_ops.lake.query import QuerySession

        services = self.call.services
        rows = QuerySession(services.settings.names, services.lake.file).query(_LEDGER)
        self._announce("The ledger: in = out + duplicates + errors, for every topic and zone.")
        if not self.call.console.as_json:
            self.call.console.rows("reconciliation_log", _ledger_lines(rows))
        self._say(_sentence(rows))
        return rows

    def trace(self, message_id: str, topic: str) -> dict[str, Any]:
        """A message's copies and their fates."""
        from lean_ops.ledger.trace import Tracer, Wanted

        services = self.call.services
        found = Tracer(services.lake.file, services.settings.names, services.state).trace(
            Wanted.message(message_id), topic
        )
        self._announce("One message that was sent three times, and what became of each copy:")
        for line in trace_lines(found):
            self._say(line)
        return trace_document(found)

    def next_commands(self, key: str) -> list[str]:
        """What to type now."""
        home = self.call.services.settings.home
        again = shlex.quote(_near(home / _FOLDER / "day1" / "orders.jsonl"))
        words = (*_TRY_NEXT, f"trace --key {shlex.quote(key)}", f"ingest orders {again}", "run")
        commands = [f"{_program()} --home {shlex.quote(_near(home))} {word}" for word in words]
        self._announce("Try next (the last two send day 1 once more, which makes nothing but duplicates):")
        for command in commands:
            self._say(f"  {escape(command)}")
        return commands


def _ledger_lines(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ledger as it fits on a screen; only Curated knows superseded records."""
    names = {"topic": "topic", "zone": "zone", "in": "records_in", "out": "records_out", "duplicates": "duplicates"}
    names |= {"superseded": "superseded"} if any(row["superseded"] for row in rows) else {}
    names |= {"errors": "errors"}
    balanced = {True: "yes", False: "NO"}
    return [
        {**{shown: row[name] for shown, name in names.items()}, "balanced": balanced[row["balanced"]]} for row in rows
    ]


def _sentence(ledger: list[dict[str, Any]]) -> str:
    """What became of every body that ever came in."""
    raw = [row for row in ledger if row["zone"] == "raw"]
    rest = [row for row in ledger if row["zone"] == "standardized"]
    taken, refused = sum(row["records_in"] for row in raw), sum(row["errors"] for row in raw)
    out, copies, errors = (sum(row[name] for row in rest) for name in ("records_out", "duplicates", "errors"))
    waiting = taken - refused - out - copies - errors
    return (
        f"{taken} bodies came in = {out} standardized + {copies} duplicates + {errors} parse errors"
        f" + {refused} dead letters" + (f" + {waiting} that wait in RAW" if waiting else "")
    )


def _program() -> str:
    """How this program was called, so that the same words work again."""
    return "lean-ops" if shutil.which("lean-ops") else shlex.quote(sys.argv[0])


def _near(path: Path) -> str:
    """A path as seen from the working directory if it is below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
