"""What a rebuild keeps in the state store: what to clear away while it builds, and all that its switch needs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lean_ops.model.batch import Intent, Zone

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ZoneSwitch:
    """One zone's part of the switch: main goes from `base` to `head`, which is the end of a branch.

    `intent` is the rebuild as the books know it; `replaced` a live batch that was open, begun and not published.
    """

    branch: str
    base: int
    head: int
    intent: Intent
    properties: Mapping[str, str]
    replaced: Intent | None = None


@dataclass(frozen=True, slots=True)
class RebuildNote:
    """A rebuild; before its switch it has no `zones` yet. `refused` are files of error rows that no table has."""

    rebuild_id: str
    refused: Mapping[Zone, tuple[str, ...]] = field(default_factory=dict)
    zones: Mapping[Zone, ZoneSwitch] = field(default_factory=dict)

    @property
    def is_switching(self) -> bool:
        """Whether main may have moved already."""
        return bool(self.zones)

    def text(self) -> str:
        """The note as the store keeps it."""
        zones = {str(zone): _plain(switch) for zone, switch in self.zones.items()}
        refused = {str(zone): list(paths) for zone, paths in self.refused.items()}
        return json.dumps({"rebuild_id": self.rebuild_id, "refused": refused, "zones": zones})

    @classmethod
    def of(cls, text: str) -> RebuildNote:
        """The note that `text` made this of."""
        data = json.loads(text)
        zones = {Zone(zone): _switch(found) for zone, found in data["zones"].items()}
        return cls(data["rebuild_id"], {Zone(zone): tuple(paths) for zone, paths in data["refused"].items()}, zones)


def _plain(switch: ZoneSwitch) -> dict[str, Any]:
    return {
        "branch": switch.branch,
        "base": switch.base,
        "head": switch.head,
        "intent": switch.intent.to_dict(),
        "properties": dict(switch.properties),
        "replaced": switch.replaced.to_dict() if switch.replaced else None,
    }


def _switch(data: dict[str, Any]) -> ZoneSwitch:
    replaced = Intent.from_dict(data["replaced"]) if data["replaced"] else None
    return ZoneSwitch(**{**data, "intent": Intent.from_dict(data["intent"]), "replaced": replaced})
