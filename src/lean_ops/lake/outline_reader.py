"""The outline of a metadata file by a parser that looks at what an outline needs and skips the rest.

It says what `History.outline` says of the same file, several times as fast: after a run over hundreds of topics
all their metadata files are new, and the next command has to read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from lean_ops.lake.metadata_file import damaged_metadata
from lean_ops.lake.snapshots import (
    BATCH_ID_PROPERTY,
    ROWS_PROPERTY,
    TO_SNAPSHOT_PROPERTY,
    Outline,
    TableCheckpoint,
    live_rows,
    possible_rows,
)

if TYPE_CHECKING:
    from pathlib import Path


class _Summary(msgspec.Struct, gc=False):
    batch_id: str | None = msgspec.field(default=None, name=BATCH_ID_PROPERTY)
    to_snapshot: str | None = msgspec.field(default=None, name=TO_SNAPSHOT_PROPERTY)
    records: str = msgspec.field(default="0", name="total-records")
    deletes: str = msgspec.field(default="0", name="total-position-deletes")


_NO_SUMMARY: Final = _Summary()


class _Snapshot(msgspec.Struct, rename="kebab", gc=False):
    snapshot_id: int
    timestamp_ms: int
    parent_snapshot_id: int | None = None
    summary: _Summary | None = None


class _Ref(msgspec.Struct, rename="kebab", gc=False):
    snapshot_id: int


class MainBranch(msgspec.Struct, rename="kebab", gc=False):
    """What of a metadata file tells where main is."""

    refs: dict[str, _Ref] = {}
    current_snapshot_id: int | None = None

    @property
    def head(self) -> int | None:
        """Main's snapshot; a table without refs has it in the field of before there were any."""
        if "main" in self.refs:
            return self.refs["main"].snapshot_id
        return None if self.current_snapshot_id == -1 else self.current_snapshot_id


class _Metadata(MainBranch, rename="kebab", gc=False):
    snapshots: list[_Snapshot] = []
    properties: dict[str, str] | None = None

    def chain(self) -> list[tuple[int, _Summary]]:
        """Times and summaries of main's snapshots, newest first, as far as they are kept; KeyError without a head."""
        by_id = {one.snapshot_id: one for one in self.snapshots}
        chain: list[tuple[int, _Summary]] = []
        next_id = self.head
        while next_id is not None and (next_id in by_id or not chain):
            one = by_id.pop(next_id)  # taken out, so that a chain that bites its tail ends
            chain.append((one.timestamp_ms, one.summary or _NO_SUMMARY))
            next_id = one.parent_snapshot_id
        return chain


_read: Final = msgspec.json.Decoder(_Metadata).decode


def read_outline(table: str, path: Path) -> Outline:
    """The outline in a metadata file; TerminalError if it can't be read or understood."""
    try:
        return _outline(_read(path.read_bytes()))
    except (OSError, KeyError, TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise damaged_metadata(table, str(path), error) from error


def _outline(metadata: _Metadata) -> Outline:
    chain = metadata.chain()
    if not chain:
        return Outline(None, 0, None, None)
    newest = chain[0][1]
    counted = (metadata.properties or {}).get(ROWS_PROPERTY)
    rows = live_rows(counted, possible_rows(int(newest.records), int(newest.deletes)))
    last = next((summary for _, summary in chain if summary.batch_id is not None), None)
    if last is None or last.batch_id is None:
        return Outline(metadata.head, rows, None, None)
    checkpoint = TableCheckpoint(last.batch_id, int(last.to_snapshot or ""))
    words = (last.batch_id, last.to_snapshot)
    times = [time for time, summary in chain if (summary.batch_id, summary.to_snapshot) == words]
    return Outline(metadata.head, rows, checkpoint, times[-1])
