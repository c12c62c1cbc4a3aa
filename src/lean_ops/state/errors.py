"""What can go wrong with a lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lean_ops.model.errors import TransientError

if TYPE_CHECKING:
    from lean_ops.state.port import Lease


class LostLeaseError(TransientError):
    """The lease expired or somebody took it over: this runner must not write any more."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        super().__init__(
            "the lease was lost while working",
            where=f"topic {lease.topic!r}",
            found=f"fence {lease.fence} of {lease.owner} is no longer the current one",
            remedy="It writes no more of this topic; the lease's new holder, or the next run, finishes the batch.",
        )
