"""After a run: small files of the tables that all topics share are put together once there are many of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import structlog

from lean_ops.operate.hop_run import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from lean_ops.lake.small_files import Gathered
    from lean_ops.ledger.books import Books
    from lean_ops.model.tables import TableName

_ACTION: Final = "REWRITE_FILES"
_log: Any = structlog.get_logger("lean_ops.tidy")


@dataclass(frozen=True, slots=True)
class Tidy:
    """Looks after the shared tables; each that was written anew, or could not be, is a row in `maintenance_log`."""

    tables: Iterable[TableName]
    gather: Callable[[TableName], Gathered | None]
    books: Books
    clock: Callable[[], datetime]

    def after_run(self, run_id: str) -> None:
        """Put small files together where it pays; that it could not be done is told, and is not the run's fault."""
        for name in self.tables:
            began = self.clock()
            try:
                found = self.gather(name)
            except Exception as error:
                # The edge of an extra: batches are published and their books written, whatever became of this.
                _log.error("small files not put together", table=str(name), exc_info=error)
                self._record(run_id, name, began, None, in_words(error))
            else:
                if found is not None:
                    self._record(run_id, name, began, found, None)

    def _record(self, run_id: str, name: TableName, began: datetime, found: Gathered | None, error: str | None) -> None:
        row = {
            "run_id": run_id,
            "topic_name": None,  # a row about all topics
            "table_name": str(name),
            "action": _ACTION,
            **(asdict(found) if found else {}),
            "status": "FAILED" if error else "SUCCEEDED",
            "error_message": error,
            "duration_ms": round((self.clock() - began).total_seconds() * 1000),
            "run_at": began,
        }
        self.books.append("maintenance_log", row)
