"""What a rebuild changes in the tables that readers see, told before it is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lean_ops.lake.difference import RowDifference
    from lean_ops.model.batch import Zone


@dataclass(frozen=True, slots=True)
class ZoneDifference:
    """A zone's rows by message (Standardized) or key (Curated), its error rows by message, and columns it gets."""

    zone: Zone
    rows: RowDifference
    errors: RowDifference
    new_columns: tuple[str, ...] = ()

    @property
    def is_none(self) -> bool:
        """Whether nothing changes."""
        return self.rows.is_none and self.errors.is_none and not self.new_columns

    def document(self) -> dict[str, Any]:
        """It for a machine."""
        return {
            "zone": str(self.zone),
            "rows": self.rows.document(),
            "errors": self.errors.document(),
            "new_columns": list(self.new_columns),
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """All zones of a topic that were built again."""

    zones: tuple[ZoneDifference, ...]

    @property
    def is_none(self) -> bool:
        """Whether nothing changes."""
        return all(zone.is_none for zone in self.zones)

    def changes_the_same(self, other: Difference) -> bool:
        """Whether another one changes just as much for readers; live rows that came on both sides don't matter."""
        return [_changes(zone) for zone in self.zones] == [_changes(zone) for zone in other.zones]

    def document(self) -> list[dict[str, Any]]:
        """It for a machine."""
        return [zone.document() for zone in self.zones]


def _changes(zone: ZoneDifference) -> dict[str, Any]:
    told = zone.document()
    totals = ("before", "after")
    return {name: _without(value, totals) if isinstance(value, dict) else value for name, value in told.items()}


def _without(told: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name not in names}
