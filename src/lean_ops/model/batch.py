"""A batch: one topic's step from one snapshot to another, and the books it keeps."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Zone(StrEnum):
    """The zone that a batch writes."""

    RAW = "raw"
    STANDARDIZED = "standardized"
    CURATED = "curated"

    @property
    def source(self) -> Zone:
        """The zone that a batch of this one reads."""
        return Zone.STANDARDIZED if self is Zone.CURATED else Zone.RAW


@dataclass(frozen=True, slots=True)
class Batch:
    """The snapshots after `from_snapshot` up to `to_snapshot`; without a start, the whole table first.

    `rebuild_id` names the rebuild that the batch is a part of: all parts of one are one batch to the books.
    """

    topic: str
    zone: Zone
    from_snapshot: int | None
    to_snapshot: int
    schema_version: str
    rebuild_id: str | None = None

    @property
    def batch_id(self) -> str:
        """The same batch has the same id, on whatever machine and however often it is tried."""
        parts: tuple[object, ...] = (self.topic, self.zone, self.from_snapshot, self.to_snapshot, self.schema_version)
        if self.rebuild_id is not None:
            parts = (self.topic, self.zone, "rebuild", self.rebuild_id)
        return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]

    @property
    def kind(self) -> str:
        """The kind of its line in the ledger."""
        return "BATCH" if self.rebuild_id is None else "REPLAY"

    @property
    def pipeline_id(self) -> str:
        """The key of this batch's checkpoint."""
        return pipeline_id(self.zone, self.topic)


def pipeline_id(zone: Zone, topic: str) -> str:
    """The name that a hop's checkpoint is kept under."""
    return f"{'standardization' if zone is Zone.STANDARDIZED else zone.value}_{topic}"


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of a batch's records."""

    records_in: int = 0
    inserted: int = 0
    updated: int = 0
    duplicates: int = 0
    superseded: int = 0
    errors: int = 0

    @property
    def records_out(self) -> int:
        """Rows of this batch that the zone's table took."""
        return self.inserted + self.updated

    @property
    def difference(self) -> int:
        """Records without a fate (positive) or with more than one (negative)."""
        return self.records_in - (self.records_out + self.duplicates + self.superseded + self.errors)

    @property
    def balanced(self) -> bool:
        """Every record has exactly one fate."""
        return self.difference == 0

    @property
    def variance(self) -> float:
        """The difference as a share of what came in."""
        return abs(self.difference) / self.records_in if self.records_in else float(self.difference != 0)

    @property
    def error_rate(self) -> float:
        """The share of the batch that was refused."""
        return self.errors / self.records_in if self.records_in else 0.0


@dataclass(frozen=True, slots=True)
class Intent:
    """An open batch as the state store keeps it: decided before the first write, finished before the next.

    `counts` is known once the books balance; the commit that publishes the batch keeps it with them, so that a
    restart after publication can still write the ledger. Those of a rebuild are by how much the books change, and
    `rebuilt` what became of all its records.
    """

    batch: Batch
    declared: tuple[str, ...]
    started_at: str
    counts: Counts | None = None
    last_ingestion_ts: int | None = None
    rebuilt: Counts | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a store."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Intent:
        """The intent that `to_dict` made this of."""
        batch = Batch(**{**data["batch"], "zone": Zone(data["batch"]["zone"])})
        counts, rebuilt = (
            Counts(**found) if (found := data.get(name)) is not None else None for name in ("counts", "rebuilt")
        )
        return cls(batch, tuple(data["declared"]), data["started_at"], counts, data["last_ingestion_ts"], rebuilt)
