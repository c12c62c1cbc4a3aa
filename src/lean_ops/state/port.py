"""The state store's ports: what the product asks of it, whichever store stands behind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from lean_ops.model.batch import Intent
    from lean_ops.model.registry import RegistryItem

DELIVERIES_KEPT: Final = timedelta(hours=24)
ERRORS_KEPT: Final = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a hop has read, and its open batch if there is one. A cache of what the tables say."""

    pipeline_id: str
    last_snapshot_id: int | None = None
    last_ingestion_ts: int | None = None
    intent: Intent | None = None
    failures: int = 0
    updated_at: str | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a topic. `fence` rises with each new holder."""

    topic: str
    owner: str
    fence: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody else has the lease."""

    by: Lease


@dataclass(frozen=True, slots=True)
class TrackedError:
    """A dead letter as the tracker indexes it. `error_id` is its archive's id, `recorded_at` when its days begin."""

    error_id: str
    topic_name: str
    message_id: str | None
    error_type: str
    archive_path: str
    status: str
    recorded_at: datetime


class CheckpointReader(Protocol):
    """Reading checkpoints."""

    def checkpoint(self, pipeline_id: str) -> Checkpoint:
        """A hop's checkpoint; an empty one if it never ran."""

    def checkpoints(self) -> dict[str, Checkpoint]:
        """All checkpoints by pipeline id."""


class CheckpointWriter(Protocol):
    """Writing checkpoints; each write is refused with LostLeaseError unless `lease` is still the current one."""

    def save_intent(self, intent: Intent, lease: Lease, now: datetime) -> None:
        """Store the open batch."""

    def close_batch(self, intent: Intent, lease: Lease, now: datetime) -> None:
        """Move the checkpoint to the batch's end, forget the intent and the failures."""

    def count_failure(self, pipeline_id: str, lease: Lease, now: datetime) -> int:
        """One more failure in a row; the number of them."""


class LeaseStore(Protocol):
    """One runner per topic."""

    def acquire(self, topic: str, owner: str, now: datetime) -> Lease | Held:
        """Take the lease if it is free or expired, or if the store can see that its process is gone."""

    def renew(self, lease: Lease, now: datetime) -> Lease:
        """The same lease with a later end, or LostLeaseError."""

    def confirm(self, lease: Lease, now: datetime) -> None:
        """LostLeaseError unless the lease is still the current one; nothing is written."""

    def release(self, lease: Lease) -> None:
        """Give the lease back; nothing happens if it was lost meanwhile."""


class Settlements(Protocol):
    """How far the ledger is known to have every flush of a topic; what is not known is looked up there."""

    def settled_up_to(self, topic: str) -> int | None:
        """The RAW snapshot up to which it is known; None if nothing is."""

    def settle_up_to(self, topic: str, snapshot_id: int) -> None:
        """Remember a snapshot, in the place of an earlier one."""


class Rebuilds(Protocol):
    """How far the rebuild of a topic is, so that whoever comes after a crash can finish it or clear it away."""

    def rebuild_note(self, topic: str) -> str | None:
        """What a rebuild of a topic left here; None if none is under way."""

    def note_rebuild(self, topic: str, note: str | None) -> None:
        """Keep a note in the place of an earlier one, or none any more."""


class Registry(Protocol):
    """The topics and their gates."""

    def item(self, topic: str) -> RegistryItem | None:
        """What is known of a topic."""

    def items(self) -> dict[str, RegistryItem]:
        """Every topic known, by name."""

    def update_item(self, topic: str, change: Callable[[RegistryItem], RegistryItem]) -> RegistryItem:
        """Change a topic's item (a new one if it is unknown) with nobody writing in between; the new item.

        `change` is asked again, with the newer item, whenever somebody else was faster.
        """

    def claim_name(self, topic: str, source_name: str, now: datetime) -> None:
        """Tie a topic to the source name it came under; another name for the same topic is a WrongUseError."""


class StateStore(CheckpointReader, CheckpointWriter, LeaseStore, Settlements, Rebuilds, Registry, Protocol):
    """All of it, as the embedded and the cloud store offer it."""


class Deliveries(Protocol):
    """Which deliveries of a queue were done with, remembered for 24 hours: a call that is repeated skips them."""

    def seen(self, ids: Iterable[str], now: datetime) -> set[str]:
        """Those of the ids that are remembered."""

    def remember(self, ids: Iterable[str], now: datetime) -> None:
        """Remember the ids for 24 hours from now on."""


class ErrorTracker(Protocol):
    """The index of dead letters of the last 90 days; older ones count as unknown, deleted or not."""

    def put(self, error: TrackedError) -> bool:
        """Book an error; False, and nothing changes, if its id is known already."""

    def mark(self, error_id: str, status: str, now: datetime) -> bool:
        """Change an error's status; False if nobody knows it."""

    def get(self, error_id: str, now: datetime) -> TrackedError | None:
        """What is known of an error."""

    def newest(self, topic: str, now: datetime, limit: int = 100) -> list[TrackedError]:
        """A topic's errors, newest first, at most `limit`; what was booked a moment ago may be missing."""
