"""Leases are renewed while their topics are worked on."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Held, Lease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from lean_ops.state.port import LeaseStore


class LeaseKeeper:
    """Takes leases for this process and renews them from a thread of its own until they are given back."""

    def __init__(self, store: LeaseStore, owner: str, clock: Callable[[], datetime], renew_every: float) -> None:
        self._store = store
        self._owner = owner
        self._clock = clock
        self._renew_every = renew_every
        self._held: dict[str, Lease] = {}
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._log = structlog.get_logger("lean_ops.leases")

    @contextmanager
    def running(self) -> Iterator[LeaseKeeper]:
        """Renewal goes on inside this block."""
        self._stop.clear()
        thread = threading.Thread(target=self._renew_until_stopped, name="lease-keeper", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join()

    @contextmanager
    def lease(self, topic: str) -> Iterator[Lease | Held]:
        """The topic's lease for the time of this block, or who has it."""
        lease = self._store.acquire(topic, self._owner, self._clock())
        if isinstance(lease, Held):
            yield lease
            return
        with self._guard:
            self._held[topic] = lease
        try:
            yield lease
        finally:
            with self._guard:
                self._held.pop(topic, None)
            self._store.release(lease)

    def _renew_until_stopped(self) -> None:
        while not self._stop.wait(self._renew_every):
            with self._guard:
                leases = list(self._held.values())
            for lease in leases:
                self._renew(lease)

    def _renew(self, lease: Lease) -> None:
        try:
            self._store.renew(lease, self._clock())
        except LostLeaseError as error:
            # Its worker meets the same refusal at its next write and stops; nothing of it will be published.
            self._log.warning("lease lost", topic=lease.topic, reason=str(error))
        except Exception as error:
            # A busy or full disk may pass before the lease does; the thread must not end over it.
            self._log.warning("lease not renewed", topic=lease.topic, reason=f"{type(error).__name__}: {error}")
