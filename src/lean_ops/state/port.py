"""The state store's ports: what the product asks of it, whichever store stands behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from lean_ops.model.batch import Intent
    from lean_ops.model.registry import RegistryItem


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
        """Take the lease if it is free, expired or its process is gone."""

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


class Registry(Protocol):
    """The topics and their gates."""

    def item(self, topic: str) -> RegistryItem | None:
        """What is known of a topic."""

    def items(self) -> dict[str, RegistryItem]:
        """Every topic known, by name."""

    def update_item(self, topic: str, change: Callable[[RegistryItem], RegistryItem]) -> RegistryItem:
        """Change a topic's item (a new one if it is unknown) with nobody writing in between; the new item."""

    def claim_name(self, topic: str, source_name: str, now: datetime) -> None:
        """Tie a topic to the source name it came under; another name for the same topic is a WrongUseError."""


class StateStore(CheckpointReader, CheckpointWriter, LeaseStore, Settlements, Registry, Protocol):
    """All of it, as the embedded and the cloud store offer it."""
