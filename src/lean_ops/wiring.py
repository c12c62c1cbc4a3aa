"""The one place where parts are put together. Nothing is opened before it is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from lean_ops.lake.catalog import Lake
from lean_ops.lake.shared import SharedTables
from lean_ops.state.presence import Presence
from lean_ops.state.sqlite import SqliteStateStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from lean_ops.settings import LoadedSettings, Settings


def utc_now() -> datetime:
    """The wall clock; passed in everywhere so that tests can hold it still."""
    return datetime.now(UTC)


@dataclass
class Services:
    """The parts of the embedded product for one home."""

    loaded: LoadedSettings
    clock: Callable[[], datetime] = field(default=utc_now)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings

    @cached_property
    def presence(self) -> Presence:
        """This process as the others see it."""
        return Presence(self.settings.home / "runners")

    @cached_property
    def state(self) -> SqliteStateStore:
        """Checkpoints, leases and the registry."""
        return SqliteStateStore(self.settings.state_file, self.settings.lease_seconds, self.presence.is_gone)

    @cached_property
    def lake(self) -> Lake:
        """The Iceberg tables."""
        return Lake(self.settings)

    @cached_property
    def shared(self) -> SharedTables:
        """The one committer of the shared tables."""
        return SharedTables(self.lake)
