"""The switch of a rebuild: main of each zone moves to what was built, under the topic's lease.

Each step can be found done and is then passed over, so whoever holds the lease after a crash carries the switch on
from where it is. Before the first table has moved it can still be given up as if it had never begun.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lean_ops.lake.rebuild_ground import delete_files
from lean_ops.lake.replace_errors import ErrorRows
from lean_ops.lake.staging import Stage, publish
from lean_ops.model.batch import Batch, Intent, Zone
from lean_ops.model.registry import Gate, RegistryItem, Status
from lean_ops.operate.intent import last_batch_property
from lean_ops.operate.plan import PlannedBatch
from lean_ops.operate.rebuild_note import RebuildNote

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from lean_ops.lake.catalog import Lake
    from lean_ops.model.tables import Names, TableName
    from lean_ops.operate.batch import BatchRunner
    from lean_ops.operate.rebuild_note import ZoneSwitch
    from lean_ops.state.port import Lease, StateStore

_NO_GATE = Gate(open=True, reason="")


def error_table(names: Names, zone: Zone) -> TableName:
    """Where a zone's refused rows go."""
    return names.parse_errors if zone is Zone.STANDARDIZED else names.curated_errors


@dataclass(frozen=True, slots=True)
class RebuildSwitch:
    """Switches topics. `on_step` hears the name of each step once it is done."""

    lake: Lake
    state: StateStore
    batches: BatchRunner
    clock: Callable[[], datetime]
    on_step: Callable[[str], None]

    def begin(self, topic: str, note: RebuildNote, lease: Lease, run_id: str) -> None:
        """Do the switch that a note describes; from here on somebody else can finish it."""
        self.state.note_rebuild(topic, note.text())
        self._done("switch noted", lease)
        for switch in note.zones.values():
            self.state.save_intent(switch.intent, lease, self.clock())
        self._done("intents stored", lease)
        self._carry_on(topic, note, lease, run_id)

    def finish(self, topic: str, lease: Lease, run_id: str) -> bool:
        """Finish or give up a switch that was broken off; False if there is none."""
        text = self.state.rebuild_note(topic)
        note = RebuildNote.of(text) if text is not None else None
        if note is None or not note.is_switching:
            return False
        if self._is_published(topic, Zone.STANDARDIZED, note.zones[Zone.STANDARDIZED]):
            self._carry_on(topic, note, lease, run_id)
        else:
            self._give_up(topic, note, lease)
        return True

    def _carry_on(self, topic: str, note: RebuildNote, lease: Lease, run_id: str) -> None:
        for zone, switch in note.zones.items():
            if not self._is_published(topic, zone, switch):
                self._publish(topic, zone, switch)
            self._done(f"{zone} switched", lease)
            rows = self._error_rows(topic, zone, note)
            rows.replace(lambda: self.state.confirm(lease, self.clock()))
            self._done(f"{zone} errors replaced", lease)
        for switch in note.zones.values():
            planned = PlannedBatch(switch.intent.batch, 0, resumes=True)
            self.batches.run(planned, self.batches.standing(switch.intent.batch), _NO_GATE, lease, run_id)
        self._done("booked", lease)
        self._clear(topic, note)

    def _publish(self, topic: str, zone: Zone, switch: ZoneSwitch) -> None:
        stage = Stage(self.lake.names.of_zone(zone, topic), switch.branch, switch.base)
        publish(self.lake, stage, switch.head, {**switch.properties, **last_batch_property(switch.intent)})

    def _is_published(self, topic: str, zone: Zone, switch: ZoneSwitch) -> bool:
        history = self.lake.file.history(self.lake.names.of_zone(zone, topic))
        shown = history.ancestors(history.head) if history else ()
        return any(snapshot.snapshot_id == switch.head for snapshot in shown)

    def _error_rows(self, topic: str, zone: Zone, note: RebuildNote) -> ErrorRows:
        batch_id = note.zones[zone].intent.batch.batch_id
        return ErrorRows(self.lake, error_table(self.lake.names, zone), topic, batch_id, note.refused.get(zone, ()))

    def _give_up(self, topic: str, note: RebuildNote, lease: Lease) -> None:
        """Put the state store back to what live processing knows; the next rebuild clears the branches away."""
        for zone, switch in note.zones.items():
            batch, now = switch.intent.batch, self.clock()
            stored = self.state.checkpoint(batch.pipeline_id)
            if switch.replaced is not None:
                self.state.save_intent(switch.replaced, lease, now)
            elif stored.last_snapshot_id is not None:
                ended = Batch(topic, zone, None, stored.last_snapshot_id, batch.schema_version)
                self.state.close_batch(Intent(ended, (), now.isoformat()), lease, now)
        self.state.note_rebuild(topic, replace(note, zones={}).text())

    def _clear(self, topic: str, note: RebuildNote) -> None:
        """What the switch has no more use for; the note goes last."""
        for zone, paths in note.refused.items():
            delete_files(self.lake, error_table(self.lake.names, zone), paths)
        self.state.update_item(topic, lambda item: ready_again(item, self.clock()))
        self.state.note_rebuild(topic, None)
        self.on_step("cleared")

    def _done(self, step: str, lease: Lease) -> None:
        """Tell of a step, then make sure of the lease: whoever lost it must leave the next write to its new holder."""
        self.on_step(step)
        self.state.confirm(lease, self.clock())


def rebuilding(item: RegistryItem, now: datetime) -> RegistryItem:
    """The item of a topic whose tables are built again; one whose gate is shut for another reason stays as it is."""
    if item.status is not Status.READY:
        return item
    return replace(item, status=Status.REBUILDING, updated_at=now.isoformat())


def ready_again(item: RegistryItem, now: datetime) -> RegistryItem:
    """The item once that has ended."""
    if item.status is not Status.REBUILDING:
        return item
    return replace(item, status=Status.READY, updated_at=now.isoformat())
