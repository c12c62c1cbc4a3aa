"""`emulate`: the days of a production system, each compared with what must have become of every message."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape

from lean_ops.entrypoints.commands.reading import existing_state
from lean_ops.entrypoints.commands.reconcile import finding_line
from lean_ops.entrypoints.commands.reconcile import verdict as books_verdict
from lean_ops.entrypoints.commands.run import execute, say_waiting
from lean_ops.entrypoints.commands.verify import difference_lines, verdict
from lean_ops.entrypoints.context import App, app_of
from lean_ops.model.errors import WrongUseError

if TYPE_CHECKING:
    from pathlib import Path

    from lean_ops.ledger.account import TopicAccount
    from lean_ops.ledger.verify_result import Verification
    from lean_ops.operate.emulation import Emulation, Phase
    from lean_ops.operate.emulation_log import EmulationLog

_FULL: Final = "full"


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("emulate")(emulate)


def emulate(
    ctx: typer.Context,
    phase: Annotated[
        str, typer.Argument(help="day1, schema, day2, day3, day4, enhanced, mixed; full: all; verify: look again.")
    ],
    size: Annotated[int | None, typer.Option(help="Bodies on day 1; the rest in proportion. 100000 at first.")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed makes the same bytes. 1 at first.")] = None,
) -> None:
    """Emulate production in a home of its own: load, deploy, corrections, drift, faults, months, a new schema."""
    from lean_ops.operate.emulation_log import begin

    call = app_of(ctx)
    log = begin(call.services.settings.home, size, seed)
    _refuse_foreign_topics(call, log)
    stage = _Stage(call, log, log.emulation)
    for each in log.wanted(phase):
        stage.play(each)
    if phase in {_FULL, "verify"}:
        stage.look_again()
    stage.end()


def _refuse_foreign_topics(call: App, log: EmulationLog) -> None:
    """WrongUseError if topics of these names are somebody's own."""
    from lean_ops.ledger.status import topics_of
    from lean_ops.operate.emulation import TOPICS

    services = call.services
    known = topics_of(services.lake.file, services.settings.names, existing_state(services))
    foreign = [topic for topic in TOPICS if topic in known]
    if foreign and not log.has_begun:
        raise WrongUseError(
            "this home has topics of the emulation's names that are not the emulation's",
            where=str(services.settings.home),
            found=", ".join(foreign),
            remedy="Choose another home, like `lean-ops --home .lean-ops-emulation emulate full`.",
        )


@dataclass
class _Stage:
    """Where phases are played, through the same code as the other commands; keeps what each came to."""

    call: App
    log: EmulationLog
    emulation: Emulation
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.log.folder

    def play(self, phase: Phase) -> None:
        """One phase from its first body to its comparison."""
        from lean_ops.operate.emulation import Phase

        began = time.monotonic()
        self.call.console.say(f"\n[bold]{phase}[/bold]")
        self.log.phase_begins(phase)
        if phase is Phase.SCHEMA:
            self._submit(enhanced=False)
            self._run()
            self._compare(phase, Phase.DAY1, 1)
        elif phase is Phase.ENHANCED:
            self._catch_up()
        else:
            last = len(self.emulation.batches(phase))
            for batch in range(1, last + 1):
                self._batch(phase, batch, is_last=batch == last, held=phase is Phase.DAY1)
        self.log.phase_ends(phase)
        self.results[-1]["seconds"] = round(time.monotonic() - began, 1)

    def _batch(self, phase: Phase, batch: int, is_last: bool, held: bool) -> None:
        """Send, run, compare; a phase that is played again may be further than this, so only its end is compared."""
        self._send(phase, batch)
        self._run()
        if is_last or not self.log.is_replay:
            self._compare(phase, phase, batch, held)

    def _catch_up(self) -> None:
        """Data piles up behind a pause; then the schema has a further column and the topics go on."""
        from lean_ops.govern.flow import pause, resume
        from lean_ops.operate.emulation import TOPICS, Phase

        services = self.call.services
        for topic in TOPICS:
            pause(services.state, topic, "the schema is about to change", services.clock())
        self._batch(Phase.ENHANCED, 1, is_last=False, held=True)
        self._submit(enhanced=True)
        for topic in TOPICS:
            resume(services.state, topic, services.clock())
        self._run()
        self._compare(Phase.ENHANCED, Phase.ENHANCED, 1)

    # what phases are made of

    def _send(self, phase: Phase, batch: int) -> None:
        from lean_ops.entrypoints.commands.ingest import totals_line
        from lean_ops.operate.emulation import Scene

        for topic, path in Scene(self.emulation, phase, batch).write_bodies(self.folder).items():
            report = self.call.services.intake(topic, topic).take(topic, [str(path)])
            self.call.console.say(escape(totals_line(report)))
            path.unlink()  # it can be made again from the seed, and it is as large as the lake

    def _submit(self, enhanced: bool) -> None:
        from lean_ops.operate.emulation import TOPICS
        from lean_ops.operate.generate.families import schema_of

        services = self.call.services
        for topic, family in TOPICS.items():
            content = schema_of(topic, family, enhanced)
            done = services.submissions.submit(topic, content, submitted_by="emulate", now=services.clock())
            self.call.console.say(f"{topic}: schema {done.schema.schema_version} is active")

    def _run(self) -> None:
        from lean_ops.operate.emulation import TOPICS

        plan = self.call.services.planner.plan(tuple(TOPICS))
        failed = [it for it in execute(self.call, plan)[1] if it.status == "FAILED"] if plan.work else []
        say_waiting(self.call, plan)
        if failed:
            self.call.console.fault(f"failed: {', '.join(outcome.topic for outcome in failed)}")

    def _compare(self, phase: Phase, sent: Phase, batches: int, held: bool = False) -> None:
        from lean_ops.operate.emulation import Scene

        Scene(self.emulation, sent, batches, held).write_fates(self.log.fates)
        accounts = self._accounts()
        self._keep(str(phase), self._verified(), accounts)

    def _verified(self) -> Verification:
        from lean_ops.ledger.oracle import read_oracle
        from lean_ops.ledger.verify import Verifier

        services = self.call.services
        parts = services.reconciler(existing_state(services))
        return Verifier(parts, read_oracle([self.log.fates]), 10, self.log.redelivered, complete=True).verify()

    def _accounts(self, recount: bool = False) -> list[TopicAccount]:
        from lean_ops.ledger.recount import Recounter
        from lean_ops.operate.emulation import TOPICS

        services = self.call.services
        reconciler = services.reconciler(existing_state(services))
        if recount:
            return [Recounter(reconciler).recount(topic).account for topic in TOPICS]
        return list(reconciler.reconcile(list(TOPICS)))

    def look_again(self) -> None:
        """Everything once more at the end, the books from the rows themselves."""
        self.call.console.say("\n[bold]verify[/bold]")
        if not self.log.fates.is_file():
            raise WrongUseError("nothing was emulated here yet", remedy="Begin with `lean-ops emulate day1`.")
        self._keep("verify", self._verified(), self._accounts(recount=True))

    # what it came to

    def _keep(self, phase: str, result: Verification, accounts: list[TopicAccount]) -> None:
        say = self.call.console.say
        for number, difference in enumerate(result.shown, start=1):
            for line in difference_lines(number, difference):
                say(escape(line))
        for zone in (zone for account in accounts for zone in account.zones):
            for finding in zone.findings:
                say(finding_line(zone, finding))
        for topic, problem in result.problems.items():
            self.call.console.fault(f"{topic} can't be compared: {problem}")
        say(f"{verdict(result)}; {books_verdict(accounts)}")
        self.results.append(
            {
                "phase": phase,
                "bodies": result.lines,
                **{line["fate"]: line["found"] for line in result.fate_lines()},
                "differences": result.differences + len(result.problems),
                "balanced": all(account.balanced for account in accounts),
            }
        )

    def end(self) -> None:
        """All phases in a table; exit 1 if anything differs."""
        names = list(dict.fromkeys(name for row in self.results for name in row))
        self.call.console.say("")
        if self.call.console.as_json:
            self.call.console.document({**asdict(self.emulation), "phases": self.results, "fates": str(self.log.fates)})
        else:
            self.call.console.rows("emulated", self.results, names)
        if any(row["differences"] or not row["balanced"] for row in self.results):
            raise typer.Exit(1)
