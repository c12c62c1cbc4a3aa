"""`demo`: the whole story on generated data, told act by act through the same code as the other commands."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.markup import escape

from lean_ops.entrypoints.commands.demo_ending import DEMO_FOLDER, Ending, announce
from lean_ops.entrypoints.commands.ingest import totals_line
from lean_ops.entrypoints.commands.reading import existing_state
from lean_ops.entrypoints.commands.run import execute, say_waiting
from lean_ops.entrypoints.commands.schema import show_activation
from lean_ops.entrypoints.context import App, app_of
from lean_ops.model.errors import WrongUseError
from lean_ops.operate.generate.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lean_ops.govern.submit import Activation
    from lean_ops.operate.demo import Day
    from lean_ops.operate.demo_folder import DemoFolder
    from lean_ops.wiring import Services

_BRIEF_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_BECOMES: Final = {
    Kind.NEW: "new rows",
    Kind.RETRY: "duplicates",
    Kind.CORRECTION: "replace the key's row",
    Kind.LATE: "superseded: too old",
    Kind.DRIFT: "rows, and new columns",
    Kind.TYPE_CHANGE: "rows, noted as drift",
    Kind.MALFORMED: "dead letters, errors",
    Kind.EMPTY: "error EMPTY_PAYLOAD",
    Kind.NOT_AN_OBJECT: "error NOT_AN_OBJECT",
    Kind.CDE_NULL: "error CDE_VIOLATION",
    Kind.BAD_TYPE: "error TYPE_CAST",
    Kind.BROKEN_RULE: "error RULE_VIOLATION",
    Kind.COMBINED: "error, all reasons",
    Kind.REFUSED: "dead letters",
}


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("demo")(demo)


def demo(ctx: typer.Context) -> None:
    """The whole story on generated data; ends with the ledger and where to look. Can be run again."""
    from lean_ops.operate.demo import TOPICS, two_days
    from lean_ops.operate.demo_folder import DemoFolder

    call = _with_brief_spark(app_of(ctx))
    ctx.call_on_close(call.close)
    _refuse_foreign_topics(call.services, TOPICS)
    now = call.services.clock()
    days = {topic: two_days(topic, now) for topic in TOPICS}
    folder = DemoFolder(call.services.settings.home / DEMO_FOLDER)
    document = _tell(_Story(call, folder, *({topic: days[topic][day] for topic in TOPICS} for day in (0, 1))))
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
    acts = [story.day_one(), story.schemas(), story.run_what_waited(), story.day_two(), story.run_again()]
    key, refused = story.one["orders"].first(Kind.NEW), story.two["orders"].first(Kind.COMBINED)
    ending = Ending(story.call, story.folder, tuple(story.one))
    return {
        "home": str(story.call.services.settings.home),
        "acts": acts,
        **ending.ledger(),
        "verified": ending.verified(),
        "trace": ending.trace(key.idempotency_key or "", "orders"),
        "next": ending.next_commands(key.idempotency_key or "", refused.message_id or ""),
    }


def _refuse_foreign_topics(services: Services, topics: tuple[str, ...]) -> None:
    """WrongUseError if a topic of this home is somebody's own: made-up records could never be taken out again."""
    from lean_ops.ledger.status import topics_of

    home = services.settings.home
    if (home / DEMO_FOLDER).is_dir():
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
    """Exit 1 if a topic failed, the books do not balance or a message is not as foretold."""
    outcomes = [outcome for act in document["acts"] if "run" in act for outcome in act["run"]["topics"]]
    failed = sorted({outcome["topic"] for outcome in outcomes if outcome["status"] == "FAILED"})
    if failed:
        call.console.fault(f"failed: {', '.join(failed)}; `lean-ops history` has the attempts")
    balanced = all(row["balanced"] for row in document["ledger"])
    if failed or not balanced or not document["verified"]["matches"]:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Story:
    """The acts: each is announced in a line, done, and returned as data."""

    call: App
    folder: DemoFolder
    one: Mapping[str, Day]
    two: Mapping[str, Day]

    def day_one(self) -> dict[str, Any]:
        gates = self.call.services.gate.gates()
        is_first = not any(gates[topic].open for topic in self.one if topic in gates)
        self._announce(
            "1. Day 1: three topics of different shapes arrive, with a few network retries; all of it lands in RAW."
        )
        taken = self._take(self.one)
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
        self._announce(
            "3. Run (Spark starts once): of what waited, the first copy of each message is standardized, every value as"
            " text; then typed, checked and curated, one row per key."
        )
        return {"act": 3, "title": "what waited is curated", "run": self._run()}

    def day_two(self) -> dict[str, Any]:
        self._announce(
            "4. Day 2: retries, corrections, late arrivals, drift, values that break the schema, payloads that can't"
            " be read, and bodies that are refused at the door."
        )
        return {"act": 4, "title": "day 2 arrives", "ingested": self._take(self.two)}

    def run_again(self) -> dict[str, Any]:
        self._announce(
            "5. Run again, only what is new: corrections update their key's row, older versions change nothing, and"
            " what breaks the schema goes to the errors with all its reasons."
        )
        return {"act": 5, "title": "day 2 is curated", "run": self._run()}

    # what the acts are made of

    def _announce(self, text: str) -> None:
        announce(self.call.console, text)

    def _say(self, text: str) -> None:
        self.call.console.say(text)

    def _take(self, days: Mapping[str, Day]) -> list[dict[str, Any]]:
        with self.folder.sending([*days.values()]) as files:
            taken = [self._take_topic(day, files[topic]) for topic, day in days.items()]
        if not self.call.console.as_json:
            self.call.console.rows("what was sent", sent_lines(days))
        return taken

    def _take_topic(self, day: Day, file: Path) -> dict[str, Any]:
        report = self.call.services.intake(day.topic, day.topic).take(day.topic, [str(file)])
        self._say(escape(totals_line(report)))
        return {
            "topic": day.topic,
            "sent": {kind.name.lower(): count for kind, count in day.kinds.items()},
            "lines": report.lines,
            "raw": report.raw,
            "dead_letters": dict(sorted(report.dead_letters.items())),
        }

    def _submit(self, topic: str) -> Activation:
        """The example schema; if the topic has one already, that one again, which changes nothing."""
        from lean_ops.operate.generate.families import example_schemas

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
        return {"run_id": run_id, "topics": topics, "waiting": plan.waiting_rows()}


def sent_lines(days: Mapping[str, Day]) -> list[dict[str, Any]]:
    """How many bodies of each kind the topics are sent."""
    return [
        {
            "bodies": str(kind),
            **{topic: day.kinds[kind] for topic, day in days.items()},
            "what becomes of them": _BECOMES[kind],
        }
        for kind in Kind
        if any(day.kinds[kind] for day in days.values())
    ]
