"""Standardized to Curated: one batch merged on a branch, its errors written, its books balanced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.curate.judge import Tally
from lean_ops.curate.merge import CuratedBatch, Observed, can_pass_over
from lean_ops.curate.rows import Judgement
from lean_ops.curate.source import Standardized
from lean_ops.lake.altered import refuse_altered
from lean_ops.lake.ground import MainGround
from lean_ops.lake.ranges import spark_name
from lean_ops.lake.snapshots import ROWS_PROPERTY, history_of
from lean_ops.lake.spark import prepare_for
from lean_ops.lake.staging import Stage, Staged, append_nothing, staged_snapshots
from lean_ops.model.batch import Counts
from lean_ops.model.curated_layout import layout_properties
from lean_ops.model.errors import TerminalError
from lean_ops.model.ledger import UnbalancedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from lean_ops.curate.protect import PiiKey
    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.ground import Ground
    from lean_ops.lake.schema_tables import SchemaTables
    from lean_ops.lake.shared import SharedTables
    from lean_ops.lake.snapshots import History, Snapshot
    from lean_ops.lake.spark import SparkSessions
    from lean_ops.model.batch import Batch, Intent
    from lean_ops.model.schema import Schema

_MERGED: Final = "spark.merge-into.num-target-rows-"


@dataclass(frozen=True, slots=True)
class Merged:
    """What the branch's commit says: rows that are new, rows that replaced one, rows of its files, rows in all."""

    head: int
    is_append: bool
    inserted: int
    updated: int
    added_records: int
    possible_rows: range

    @property
    def rows(self) -> int:
        """Rows that the merge wrote."""
        return self.inserted + self.updated


class CurateHop:
    """Stages batches of any topic; each thread works in its own Spark session.

    `schema_of` finds the schema of a topic by its version: a batch keeps the schema that it began with.
    """

    def __init__(
        self,
        lake: Lake,
        shared: SharedTables,
        sessions: SparkSessions,
        tables: SchemaTables,
        schema_of: Callable[[str, str], Schema],
        key: PiiKey | None,
        clock: Callable[[], datetime],
        ground: Ground | None = None,
    ) -> None:
        self._lake = lake
        self._sessions = sessions
        self._schema_of = schema_of
        self._tables = tables
        self._key = key
        self._clock = clock
        self._ground = ground or MainGround(lake, shared)

    def stage(self, intent: Intent, resumed: bool, on_step: Callable[[str], None]) -> Staged:
        """Merge the batch on its branch and write its errors; UnbalancedError if the books do not balance.

        A batch that is tried again (`resumed`) finds the errors that an earlier try has already written for good.
        """
        batch = intent.batch
        judgement = Judgement(batch, self._schema_of(batch.topic, batch.schema_version), self._key, self._clock())
        before = history_of(self._tables.curated(judgement.schema))
        there = self._ground.rows(before)
        source = self._standardized(batch)
        records_in = source.records_of(batch)
        stage = self._ground.open_stage(self._lake.names.curated(batch.topic), batch)
        is_append = not records_in or _has_no_rows(before, self._ground.head(before), stage.base)
        if records_in:
            job = self._job(source, judgement, records_in + there)
            passes_over = can_pass_over(records_in, there)
            observed = job.append(stage, records_in) if is_append else job.merge(stage, passes_over)
            on_step("rows merged")
            errors = self._write_errors(job, batch, observed, resumed, on_step)
        else:
            append_nothing(self._lake, stage, batch)
            observed, errors = Observed(), 0
        merged = self._merged(stage, is_append)
        rows = there + merged.inserted
        counts = self._balanced(batch, rows, merged, observed, records_in, errors)
        return Staged(stage, merged.head, counts, observed.last_ingestion_ts, _properties(judgement.schema, rows))

    def _standardized(self, batch: Batch) -> Standardized:
        table = refuse_altered(self._lake.load(self._lake.names.standardized(batch.topic)), with_docs=True)
        schema, end = table.schema(), table.snapshot_by_id(batch.to_snapshot)
        if not self._ground.is_main and end is not None and end.schema_id is not None:
            schema = table.schemas()[end.schema_id]  # live processing may have added columns since
        return Standardized(self._lake, schema, history_of(table))

    def _job(self, source: Standardized, judgement: Judgement, rows: int) -> CuratedBatch:
        """The batch's job in a session that is set up for so many rows, there and new."""
        spark = self._sessions.mine()
        prepare_for(spark, rows)
        live = None if self._ground.is_main else spark_name(self._lake.names.curated(judgement.batch.topic))
        return CuratedBatch(spark, source, judgement, Tally.of(spark), live)

    def _write_errors(
        self, job: CuratedBatch, batch: Batch, observed: Observed, resumed: bool, on_step: Callable[[str], None]
    ) -> int:
        """How many rows the error table has of the batch: those of an earlier try, or what it takes now."""
        name = self._lake.names.curated_errors
        there = self._ground.kept_refused(name, batch) if resumed and observed.errors else 0
        if there or not observed.errors:
            return there
        written = self._ground.keep_refused(name, job.refused(observed))
        on_step("errors written")
        return written

    def _merged(self, stage: Stage, is_append: bool) -> Merged:
        """What the branch's one commit did: what it appended, or what it says of its merge."""
        (snapshot,) = staged_snapshots(self._lake, stage)
        added = snapshot.count("added-records")
        inserted = added if is_append else _told(stage, snapshot, "inserted")
        updated = 0 if is_append else _told(stage, snapshot, "updated")
        return Merged(snapshot.snapshot_id, is_append, inserted, updated, added, snapshot.possible_rows)

    def _balanced(
        self, batch: Batch, rows: int, merged: Merged, observed: Observed, records_in: int, errors: int
    ) -> Counts:
        """The books, each number held against a witness: summaries, the job, the error table and the files' rows."""
        good = observed.records_in - observed.errors
        counts = Counts(records_in, merged.inserted, merged.updated, superseded=good - merged.rows, errors=errors)
        confirmed = (
            counts.balanced
            and observed.records_in == records_in
            and merged.rows <= observed.keys <= good
            and (merged.rows == observed.keys or not merged.is_append)
            and merged.rows == merged.added_records
            and rows in merged.possible_rows
        )
        if not confirmed:
            raise UnbalancedError(batch, counts, _seen(observed, merged, rows))
        return counts


def _has_no_rows(before: History, head: int | None, base: int) -> bool:
    """Whether a branch that begins at `base` begins without rows; where somebody published since, nobody knows."""
    return base == head and before.snapshots[base].summary.get("total-records") == "0"


def _properties(schema: Schema, rows: int) -> dict[str, str]:
    """What the table keeps about its rows; a schema's own properties go before ours."""
    given = (schema.table_properties or {}).keys()
    ours = {key: value for key, value in layout_properties(rows).items() if key not in given}
    return {ROWS_PROPERTY: str(rows), **ours}


def _told(stage: Stage, snapshot: Snapshot, what: str) -> int:
    """What the merge's commit says of itself; TerminalError if it does not."""
    if _MERGED + what not in snapshot.summary:
        raise TerminalError(
            "the commit of the merge does not say what it did",
            where=f"{stage.name}, snapshot {snapshot.snapshot_id}",
            expected=f"{_MERGED + what!r} in its summary",
            remedy="Use the Spark and Iceberg versions that lean-ops is locked to; `lean-ops doctor` names them.",
        )
    return snapshot.count(_MERGED + what)


def _seen(observed: Observed, merged: Merged, rows: int) -> str:
    return (
        f"the job saw {observed.records_in} records, {observed.errors} errors and {observed.keys} keys; the merge wrote"
        f" {merged.added_records} rows, and of {rows} rows in all the table can hold {merged.possible_rows}"
    )
