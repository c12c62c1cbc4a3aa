"""A topic's lock for submissions where no file can be locked: a lease in the state store."""

from __future__ import annotations

import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.model.errors import TransientError
from lean_ops.state.port import Held, Lease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from lean_ops.state.port import LeaseStore

_PATIENCE_SECONDS: Final = 20.0
_LOOK_AGAIN_SECONDS: Final = 0.25


def _new_owner() -> str:
    return f"schema/{uuid.uuid4().hex}"


@dataclass(frozen=True, slots=True)
class LeaseLock:
    """Waits a while for the lease, then TransientError. It is not the lease of the topic's runner: both go on.

    Whoever dies holding it keeps the others out until it expires. A holder must be done by then: on AWS the
    function's timeout is shorter than the lease. The active schema is safe even from one that is not, because it is
    replaced only if it is still the one that was compared with.
    """

    leases: LeaseStore
    clock: Callable[[], datetime]
    new_owner: Callable[[], str] = _new_owner
    sleep: Callable[[float], None] = time.sleep
    patience: float = _PATIENCE_SECONDS

    @contextmanager
    def __call__(self, topic: str) -> Iterator[None]:
        """The topic's lock for the time of the block."""
        lease = self._taken(topic)
        try:
            yield
        finally:
            self.leases.release(lease)

    def _taken(self, topic: str) -> Lease:
        owner, waited = self.new_owner(), 0.0
        while isinstance(answer := self.leases.acquire(f"schema:{topic}", owner, self.clock()), Held):
            if waited >= self.patience:
                raise _held(topic, answer.by)
            self.sleep(_LOOK_AGAIN_SECONDS)
            waited += _LOOK_AGAIN_SECONDS
        return answer


def _held(topic: str, holder: Lease) -> TransientError:
    return TransientError(
        "another submission of this topic is at work",
        where=f"topic {topic!r}",
        found=f"{holder.owner} until {holder.expires_at.isoformat(timespec='seconds')}",
        remedy="Do the same again once it is done.",
    )
