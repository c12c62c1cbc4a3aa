"""One soak: rounds on one home, and after every few of them the comparison with what must have become of it all."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.soak.actors import LIMIT, Actor, after_seconds, due_by, play, run_arguments
from tests.soak.decisions import FeedPlan, RoundPlan, RunPlan, plan_round
from tests.soak.feed import Feed, feeds_of
from tests.soak.processes import Process, Processes, SoakError
from tests.soak.steps import Journal, Usual, nearer
from tests.soak.tally import Tally

_GRACE = 60.0
_RUNS_TO_REST = 4


@dataclass
class Soak:
    """The stage: home, topics and processes, and what was counted up to now."""

    seed: int
    home: Path
    folder: Path
    tally: Tally = field(default_factory=Tally)
    journal: Journal = field(default_factory=Journal)
    usual: Usual = field(default_factory=Usual)
    ingest_seconds: float = 2.0

    def __post_init__(self) -> None:
        self.feeds: list[Feed] = feeds_of(self.seed)
        self.processes = Processes(self.home, self.folder / "said")
        self.bodies = self.folder / "bodies"
        self.bodies.mkdir(parents=True, exist_ok=True)

    def play(self, seconds: float, rounds: int | None, least_killed: int = 0) -> None:
        """Rounds until their number or the time is over; then everything comes to rest and is compared.

        On a slow machine they go on until at least so many runs were made to end.
        """
        until = time.monotonic() + seconds
        self._command("init")
        number = 0
        while rounds is None or number < rounds:
            if time.monotonic() >= until and self.tally.runs_killed >= least_killed:
                break
            number += 1
            self.tally.rounds = number
            self._round(plan_round(self.seed, number, len(self.feeds)))
        self._come_to_rest(recounts=True)

    def close(self) -> None:
        """Nothing that was started here stays."""
        self.processes.end_all()

    # a round

    def _round(self, plan: RoundPlan) -> None:
        opening = [feed for feed in self.feeds if not feed.is_open and feed.opens_at <= plan.number]
        play([Actor(self._submission(feed)) for feed in opening])
        self._ingest(plan.feeds)
        paused = self._pause(plan.paused)
        runs = [self._started_run(run) for run in plan.runs]
        fed = [self._fed(feed) for feed in plan.feeds_beside]
        others = [Actor(process) for process in self._beside(plan)]
        play([*runs, *(actor for _, actor in fed), *others])
        for run in runs:
            self._count_run(run)
        for feed, actor in fed:
            self._count_ingest(feed, actor)
        if paused is not None:
            self._command("resume", paused.topic)
        if plan.compares:
            self._come_to_rest(plan.recounts)

    def _beside(self, plan: RoundPlan) -> Iterable[Process]:
        """Commands that run at the same time as the runs."""
        for aside in plan.asides:
            self.tally.asides += 1
            yield self.processes.start(*aside)
        feed = self._open_feed(plan.resubmitted)
        if feed is not None:
            yield self._submission(feed)

    def _pause(self, number: int | None) -> Feed | None:
        feed = self._open_feed(number)
        if feed is not None:
            self.tally.pauses += 1
            self._command("pause", feed.topic)
        return feed

    def _open_feed(self, number: int | None) -> Feed | None:
        return self.feeds[number] if number is not None and self.feeds[number].is_open else None

    def _submission(self, feed: Feed) -> Process:
        self.tally.schemas_submitted += 1
        path = self.bodies / f"{feed.topic}.schema.json"
        path.write_bytes(feed.next_schema())
        return self.processes.start("schema", "submit", feed.topic, str(path))

    # runs and ingestion

    def _started_run(self, plan: RunPlan) -> Actor:
        process = self.processes.start_watched(*run_arguments(plan))
        return Actor(process, plan.end, due_by(plan.moment, self.usual))

    def _count_run(self, run: Actor) -> None:
        steps, began = run.steps, run.process.began_at
        self.usual.learn(steps, began, finished=not run.was_hit)
        self.journal.add(steps, began, run.broken, run.hit_at)
        self.tally.count_run(run)

    def _ingest(self, plans: Iterable[FeedPlan]) -> None:
        fed = [self._fed(plan) for plan in plans]
        play([actor for _, actor in fed])
        for feed, actor in fed:
            self._count_ingest(feed, actor)

    def _fed(self, plan: FeedPlan) -> tuple[Feed, Actor]:
        feed = self.feeds[plan.topic]
        is_again = feed.owed is not None
        path = feed.write_bodies(feed.take_next(), self.bodies)
        self.tally.count_file(is_again)
        process = self.processes.start("ingest", feed.topic, str(path))
        return feed, Actor(process, plan.end, after_seconds(plan.share * self.ingest_seconds))

    def _count_ingest(self, feed: Feed, actor: Actor) -> None:
        """A file whose ingestion ended well is never sent again; any other is, from its first line on."""
        self.tally.count_ingest(actor)
        if actor.process.code == 0:
            part = feed.owed
            feed.landed()
            assert part is not None
            self.tally.bodies_sent += part.last - part.first
            (self.bodies / part.file).unlink()
        if actor.process.lasted is not None and not actor.was_hit:
            self.ingest_seconds = nearer(self.ingest_seconds, actor.process.lasted)

    # rest and comparison

    def _come_to_rest(self, recounts: bool) -> None:
        """Send what is owed, let everything finish, and compare."""
        owed = [number for number, feed in enumerate(self.feeds) if feed.owed is not None]
        self._ingest([FeedPlan(number, None, 0) for number in owed])
        self._resume_paused()
        self._nothing_left_behind()
        self._run_until_nothing_new()
        self._compare()
        self._command("reconcile")
        if recounts:
            self.tally.recounts += 1
            self._command("reconcile", "--recount")
        self._nothing_left_behind()

    def _resume_paused(self) -> None:
        """What an operator does for topics that were paused after failures in a row."""
        for line in self._document("schema", "list"):
            if line["flow"] == "PAUSED":
                self.tally.resumed_after_failures += 1
                self._command("resume", line["topic"])

    def _run_until_nothing_new(self) -> None:
        for _ in range(_RUNS_TO_REST):
            run = Actor(self.processes.start_watched("run"))
            play([run])
            self._count_run(run)
            if "nothing new to process" in run.process.words:
                return
        raise SoakError(f"after {_RUNS_TO_REST} runs there is still something to do:\n{run.process.words}")

    def _nothing_left_behind(self) -> None:
        left = self.processes.left_behind(_GRACE)
        if left:
            raise SoakError(f"processes {left} are still there {_GRACE:.0f} s after their programs")

    def _compare(self) -> None:
        fates = self.folder / "fates.jsonl"
        with fates.open("wb") as file:
            for feed in self.feeds:
                feed.write_fates(file)
        arguments = ("verify", "--fates", str(fates), "--complete", "--redelivered")
        result = self._document(*arguments, may_fail=True)
        self.tally.count_comparison(result)
        if not result.get("matches"):
            raise SoakError(f"differs from what must be:\n{json.dumps(result, indent=1)[:6000]}")

    # commands that must succeed

    def _command(self, *arguments: str) -> str:
        actor = Actor(self.processes.start(*arguments))
        actor.process.wait(LIMIT)
        actor.judge()
        return actor.process.words

    def _document(self, *arguments: str, may_fail: bool = False) -> Any:
        process = self.processes.start(*arguments, "--json")
        process.wait(LIMIT)
        if not may_fail:
            Actor(process).judge()
        try:
            return json.loads(process.answer)
        except ValueError:
            raise SoakError(f"{process.name} printed no document:\n{process.words[:4000]}") from None
