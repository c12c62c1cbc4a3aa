"""A topic's tables built again from RAW beside the live ones, shown, and put in their place; the leases for that."""

from __future__ import annotations

import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import structlog

from lean_ops.lake.rebuild_ground import delete_files, drop_branches
from lean_ops.ledger.books import Alert, Attempt, RunStatus, history_row
from lean_ops.model.batch import Zone, pipeline_id
from lean_ops.model.errors import LeanOpsError, TerminalError, TransientError
from lean_ops.operate.hop_run import in_words
from lean_ops.operate.intent import open_batch, published_batch
from lean_ops.operate.plan import PlannedBatch
from lean_ops.operate.rebuild_build import Building
from lean_ops.operate.rebuild_note import RebuildNote
from lean_ops.operate.rebuild_switch import error_table, ready_again, rebuilding
from lean_ops.state.port import Held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from lean_ops.ledger.account import TopicAccount
    from lean_ops.ledger.books import Books
    from lean_ops.model.batch import Intent
    from lean_ops.model.registry import Gate
    from lean_ops.operate.batch import BatchRunner
    from lean_ops.operate.leases import LeaseKeeper
    from lean_ops.operate.rebuild_build import BuildParts
    from lean_ops.operate.rebuild_difference import Difference
    from lean_ops.operate.rebuild_switch import RebuildSwitch
    from lean_ops.state.port import Lease, StateStore

# Live processing is caught up with so often without its lease; what is left then is done with it.
_ROUNDS: Final = 10
_LOOK_AGAIN_SECONDS: Final = 0.5
_OWN_LEASE: Final = "rebuild:"  # no topic's own: it keeps two rebuilds apart, and live processing does not ask for it


@dataclass(frozen=True, slots=True)
class RebuildOutcome:
    """What became of a rebuild; SKIPPED is one that was shown and not wanted, or left to another."""

    topic: str
    status: RunStatus
    reason: str | None = None
    rebuild_id: str | None = None
    difference: Difference | None = None
    published: bool = False

    def document(self) -> dict[str, Any]:
        """It for a machine."""
        return {
            "topic": self.topic,
            "status": str(self.status),
            "reason": self.reason,
            "rebuild_id": self.rebuild_id,
            "published": self.published,
            "unchanged": self.difference.is_none if self.difference else None,
            "zones": self.difference.document() if self.difference else [],
        }


@dataclass(frozen=True, slots=True)
class RebuildParts:
    """What rebuilds work with; `ensure_tables` makes a topic's tables that are missing, by its schema's version."""

    build: BuildParts
    switch: RebuildSwitch
    batches: BatchRunner
    books: Books
    state: StateStore
    leases: LeaseKeeper
    gate: Callable[[str], Gate]
    ensure_tables: Callable[[str, str], None]
    account: Callable[[str], TopicAccount]
    clock: Callable[[], datetime]
    patience_seconds: float


@dataclass
class Rebuilder:
    """Builds topics again, one at a time."""

    parts: RebuildParts
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _log: Any = field(default_factory=lambda: structlog.get_logger("lean_ops.rebuild"))

    def rebuild(self, topic: str, agree: Callable[[Difference], bool], asks: bool = False) -> RebuildOutcome:
        """Build a topic again, show the difference, and publish it if `agree` says so; a failure is an outcome.

        Where `agree` `asks` somebody, only what changes just as much as they agreed to is published.
        """
        began = self.parts.clock()
        with self.parts.leases.running(), self.parts.leases.lease(_OWN_LEASE + topic) as own:
            if isinstance(own, Held):
                return RebuildOutcome(topic, RunStatus.SKIPPED, f"another rebuild is at work, by {own.by.owner}")
            try:
                return self._rebuilt(own, agree, asks, began)
            except Exception as error:
                # The edge of a rebuild: nothing of it was published, or what was is finished by whoever comes next.
                return self._failed(topic, error, began)

    def _rebuilt(self, own: Lease, agree: Callable[[Difference], bool], asks: bool, began: datetime) -> RebuildOutcome:
        topic = own.topic.removeprefix(_OWN_LEASE)
        if self._finished_earlier(topic):
            finished = "an earlier rebuild that had begun to switch was finished"
            return RebuildOutcome(topic, RunStatus.SUCCEEDED, finished, published=True)
        gate = self._open_gate(topic)
        self.parts.ensure_tables(topic, gate.schema_version)
        self._clear_away(topic)
        rebuild_id = uuid.uuid4().hex[:16]
        self.parts.state.note_rebuild(topic, RebuildNote(rebuild_id).text())
        self._mark(topic, rebuilding)
        try:
            building = Building.begin(self.parts.build, topic, rebuild_id, gate)
            difference, published = self._published(building, own, agree, asks, began)
        except (Exception, KeyboardInterrupt):
            self._try_to_give_up(topic, rebuild_id)
            raise
        self._give_up(topic, rebuild_id)
        reason = None if published else "not published: the tables are as they were"
        status = RunStatus.SUCCEEDED if published else RunStatus.SKIPPED
        return RebuildOutcome(topic, status, reason, rebuild_id, difference, published)

    def _published(
        self, building: Building, own: Lease, agree: Callable[[Difference], bool], asks: bool, began: datetime
    ) -> tuple[Difference, bool]:
        while True:
            self._catch_up(building)
            difference = building.difference()
            self.parts.build.on_step("compared")
            if not agree(difference):
                return difference, False
            with self._topic_lease(building.topic) as lease:
                self._book_published(building.topic, lease)
                agreed, difference = difference, self._last_part(building, difference)
                if asks and not difference.changes_the_same(agreed):
                    continue  # who agreed to something else is asked again, while live processing goes on
                self._refuse_other_schema(building)
                self.parts.state.confirm(own, self.parts.clock())
                replaced = {zone: self._open_intent(building.topic, zone) for zone in building.zones}
                note = building.switch(self.parts.account(building.topic), replaced, began)
                self.parts.switch.begin(building.topic, note, lease, self.run_id)
                return difference, True

    def _catch_up(self, building: Building) -> None:
        for _ in range(_ROUNDS):
            if not building.catch_up():
                return
            self.parts.state.note_rebuild(building.topic, building.note().text())
            self.parts.build.on_step("caught up")

    def _last_part(self, building: Building, difference: Difference) -> Difference:
        """What has come since, now that live processing stands still; the difference that is then."""
        if not building.catch_up() and building.is_compared:
            return difference
        self.parts.state.note_rebuild(building.topic, building.note().text())
        return building.difference()

    # before and after

    def _finished_earlier(self, topic: str) -> bool:
        """Finish a switch that was broken off; whether there was one that could not be given up any more."""
        text = self.parts.state.rebuild_note(topic)
        if text is None or not RebuildNote.of(text).is_switching:
            return False
        with self._topic_lease(topic) as lease:
            self.parts.switch.finish(topic, lease, self.run_id)
        return self.parts.state.rebuild_note(topic) is None

    def _clear_away(self, topic: str) -> None:
        """What a rebuild that was not published has left: branches, and files of error rows."""
        lake, text = self.parts.build.lake, self.parts.state.rebuild_note(topic)
        for zone, paths in (RebuildNote.of(text).refused if text is not None else {}).items():
            delete_files(lake, error_table(lake.names, zone), paths)
        for name in (lake.names.standardized(topic), lake.names.curated(topic)):
            if lake.exists(name):
                drop_branches(lake, name)

    def _give_up(self, topic: str, rebuild_id: str) -> None:
        """Clear away what is ours, unless there is a switch to be finished; one that is done has left nothing."""
        text = self.parts.state.rebuild_note(topic)
        note = RebuildNote.of(text) if text is not None else None
        if note is None or note.is_switching or note.rebuild_id != rebuild_id:
            return
        self._clear_away(topic)
        self._mark(topic, ready_again)
        self.parts.state.note_rebuild(topic, None)

    def _try_to_give_up(self, topic: str, rebuild_id: str) -> None:
        """The same after a failure, whose own words count: what can't be cleared away now, the next try clears away."""
        try:
            self._give_up(topic, rebuild_id)
        except Exception as error:
            self._log.error("not cleared away", topic=topic, rebuild_id=rebuild_id, exc_info=error)

    def _mark(self, topic: str, change: Callable[[Any, datetime], Any]) -> None:
        if self.parts.state.item(topic) is not None:
            self.parts.state.update_item(topic, lambda item: change(item, self.parts.clock()))

    # what live processing has to do with it

    def _open_gate(self, topic: str) -> Gate:
        gate = self.parts.gate(topic)
        if not gate.open:
            raise TerminalError(
                "its gate is shut", where=f"topic {topic!r}", found=gate.reason, remedy="Submit a schema or enable it."
            )
        return gate

    def _refuse_other_schema(self, building: Building) -> None:
        now, then = self.parts.gate(building.topic).schema_version, building.gate.schema_version
        if now != then:
            raise TransientError(
                "another schema was activated meanwhile",
                where=f"topic {building.topic!r}",
                found=f"schema {now}",
                expected=f"schema {then}, with which it was built",
                remedy="The tables are as they were. Start the rebuild again.",
            )

    @contextmanager
    def _topic_lease(self, topic: str) -> Iterator[Lease]:
        """The topic's lease, waited for as long as a batch may take."""
        deadline = time.monotonic() + self.parts.patience_seconds
        while True:
            with self.parts.leases.lease(topic) as lease:
                if not isinstance(lease, Held):
                    yield lease
                    return
            if time.monotonic() > deadline:
                raise TransientError(
                    "live processing did not let go of the topic",
                    where=f"topic {topic!r}",
                    found=f"its lease is held by {lease.by.owner}",
                    remedy="The tables are as they were. Start the rebuild again when that run has ended.",
                )
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _book_published(self, topic: str, lease: Lease) -> None:
        """A live batch that is published and not booked gets its books: the rebuild's are made on top of them."""
        lake = self.parts.build.lake
        for zone in (Zone.STANDARDIZED, Zone.CURATED):
            table = lake.file.history(lake.names.of_zone(zone, topic))
            published = published_batch(table)
            if published is None:
                continue
            standing = self.parts.batches.standing(published.batch)
            begun = open_batch(standing.checkpoint, table)
            if begun is not None and begun.batch == published.batch:
                planned = PlannedBatch(published.batch, 0, resumes=True)
                self.parts.batches.run(planned, standing, self.parts.gate(topic), lease, self.run_id)

    def _open_intent(self, topic: str, zone: Zone) -> Intent | None:
        return self.parts.state.checkpoint(pipeline_id(zone, topic)).intent

    def _failed(self, topic: str, error: Exception, began: datetime) -> RebuildOutcome:
        reason, now = f"rebuild: {in_words(error)}", self.parts.clock()
        self._log.error("rebuild failed", topic=topic, exc_info=error)
        try:
            attempt = Attempt(self.run_id, topic, Zone.STANDARDIZED, None, began)
            self.parts.books.append("job_run_history", history_row(attempt, RunStatus.FAILED, reason, None, now))
            kind = error.alert_kind if isinstance(error, LeanOpsError) else LeanOpsError.alert_kind
            self.parts.books.raise_alert(Alert(f"{self.run_id}-rebuild", topic, kind, "critical", reason), now)
        except Exception as other:
            # What could not be written down is still told by the outcome.
            self._log.error("not recorded", topic=topic, reason=reason, exc_info=other)
        return RebuildOutcome(topic, RunStatus.FAILED, reason)
