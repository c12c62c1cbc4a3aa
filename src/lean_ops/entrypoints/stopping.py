"""A request to stop (Ctrl-C, SIGTERM) while batches run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lean_ops.ingest.stop import StopSignal
from lean_ops.model.errors import LeanOpsError


@contextmanager
def stoppable() -> Iterator[None]:
    """A request to stop ends what is inside between two commits, and is told as an error."""
    with StopSignal(anywhere=True):
        try:
            yield
        except KeyboardInterrupt as asked:
            what = f"interrupted between commits by {str(asked) or 'Ctrl-C'}"
            raise LeanOpsError(what, remedy="The next `lean-ops run` continues.") from None
