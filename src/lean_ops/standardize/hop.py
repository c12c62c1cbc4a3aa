"""RAW to Standardized: one batch staged on a branch, its errors and drift written, its books balanced."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lean_ops.lake.altered import refuse_altered
from lean_ops.lake.ground import MainGround
from lean_ops.lake.snapshots import history_of
from lean_ops.lake.spark import prepare_for
from lean_ops.lake.staging import Stage, Staged, StagedRows, append_nothing, count_staged
from lean_ops.model.batch import Counts
from lean_ops.model.ledger import UnbalancedError
from lean_ops.standardize.columns import PayloadColumns, add_columns, kinds_held, kinds_property, published_columns
from lean_ops.standardize.drift import DriftKind, drift_rows, find_drift
from lean_ops.standardize.write import Observed, batch_frames, look_at_rows, refused_rows, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.ground import Ground
    from lean_ops.lake.shared import SharedTables
    from lean_ops.lake.spark import SparkSessions
    from lean_ops.model.batch import Batch, Intent
    from lean_ops.standardize.flatten import PlaceCounts
    from lean_ops.standardize.latest import LatestViews

_OF_COLUMNS: Final = frozenset({DriftKind.NEW_COLUMN, DriftKind.COLLISION})


class StandardizeHop:
    """Stages batches of any topic; each thread works in its own Spark session."""

    def __init__(
        self,
        lake: Lake,
        shared: SharedTables,
        sessions: SparkSessions,
        views: LatestViews,
        column_limit: int,
        clock: Callable[[], datetime],
        ground: Ground | None = None,
    ) -> None:
        self._lake = lake
        self._shared = shared
        self._sessions = sessions
        self._views = views
        self._column_limit = column_limit
        self._clock = clock
        self._ground = ground or MainGround(lake, shared)

    def stage(self, intent: Intent, resumed: bool, on_step: Callable[[str], None]) -> Staged:
        """Write the batch on its branch, its errors and its drift; UnbalancedError if the books do not balance.

        A batch that is tried again (`resumed`) finds what an earlier try has already written for good.
        """
        batch = intent.batch
        name = self._lake.names.standardized(batch.topic)
        before = published_columns(self._lake.ensure_standardized(batch.topic))
        raw = history_of(refuse_altered(self._lake.load(self._lake.names.raw(batch.topic))))
        records_in = raw.records_between(batch.from_snapshot, batch.to_snapshot)
        stage = self._ground.open_stage(name, batch)
        if records_in:
            stage, observed = self._write(intent, stage, records_in, resumed, on_step)
        else:
            append_nothing(self._lake, stage, batch)
            observed = Observed()
        table = self._lake.load(name)
        after, held = PayloadColumns.of_schema(table.schema()), kinds_held(table)
        self._log_drift(batch, (before, after), held, observed.places, resumed)
        on_step("drift logged")
        if records_in and self._latest_is_out_of_date(batch, before, after):
            self._views.make(batch.topic, {field.name: str(field.field_type) for field in table.schema().fields})
            on_step("view made")
        staged = count_staged(self._lake, stage)
        counts = self._balanced(batch, staged, observed, records_in)
        properties = kinds_property(held, observed.places, after)
        return Staged(stage, staged.head, counts, observed.last_ingestion_ts, properties)

    def _latest_is_out_of_date(self, batch: Batch, before: PayloadColumns, after: PayloadColumns) -> bool:
        """Whether the view is missing, or lacks columns that this batch (whichever try of it) has brought."""
        view = self._lake.names.latest(batch.topic)
        return before.all_names != after.all_names or not self._lake.file.has_view(view)

    def _write(
        self, intent: Intent, stage: Stage, records_in: int, resumed: bool, on_step: Callable[[str], None]
    ) -> tuple[Stage, Observed]:
        """Rows with the columns known so far, then errors; once more with new columns if new leaves turned up.

        So a payload is parsed once, and twice in a batch that brings new columns. Errors come before the second
        write, which leaves them out: a refused payload is never parsed three times. Where no column is known yet,
        all that much would be written for nothing: a large batch is then only looked at the first time.
        """
        batch, spark = intent.batch, self._sessions.mine()
        prepare_for(spark, records_in)
        left_out = self._ground.kept_refused(self._lake.names.parse_errors, batch) if resumed else 0
        frames = batch_frames(spark, self._lake, self._ground, batch, records_in, left_out > 0)
        columns = self._columns(batch)
        is_first_look = not columns.by_pointer and frames.left_out is None
        observed = look_at_rows(spark, frames) if is_first_look else write_rows(spark, frames, stage, columns)
        on_step("rows looked at" if is_first_look else "rows staged")
        errors = left_out
        if observed.errors:
            parts = refused_rows(spark, frames, stage, observed, self._clock())
            errors += self._ground.keep_refused(self._lake.names.parse_errors, parts)
            on_step("errors written")
        if is_first_look or (columns.unknown(observed.places) and columns.room(self._column_limit)):
            table = self._lake.load(stage.name)
            add_columns(table, observed.places, intent.declared, self._column_limit)
            on_step("columns added")
            stage = self._ground.open_stage(stage.name, batch)
            left_out = errors
            frames = batch_frames(spark, self._lake, self._ground, batch, records_in, left_out > 0)
            observed = write_rows(spark, frames, stage, self._columns(batch))
            on_step("rows staged again")
        return stage, replace(observed, first_copies=observed.first_copies + left_out, errors=errors)

    def _columns(self, batch: Batch) -> PayloadColumns:
        return PayloadColumns.of_schema(self._lake.load(self._lake.names.standardized(batch.topic)).schema())

    def _balanced(self, batch: Batch, staged: StagedRows, observed: Observed, records_in: int) -> Counts:
        """The books, each number from a source of its own: summaries, the job, and what the error table took."""
        counts = Counts(
            records_in=records_in,
            inserted=staged.rows,
            duplicates=observed.records_in - observed.first_copies,
            errors=observed.errors,
        )
        if not counts.balanced or observed.records_in != records_in:
            raise UnbalancedError(batch, counts, f"the job saw {observed.records_in} records")
        return counts

    def _log_drift(
        self,
        batch: Batch,
        columns: tuple[PayloadColumns, PayloadColumns],
        held: PlaceCounts,
        places: PlaceCounts,
        resumed: bool,
    ) -> None:
        """Once per batch: a try that finds the batch's rows adds nothing."""
        drift_log = self._lake.names.ops("drift_log")
        if resumed and self._shared.rows_of_batch(drift_log, batch.topic, batch.batch_id):
            return
        before, after = columns
        logged: set[str] = set()
        if after.unknown(places):
            logged = self._shared.values(drift_log, "json_pointer", topic_name=batch.topic, kind=DriftKind.COLUMN_LIMIT)
        drift = find_drift(before, after, held, places, logged)
        if not self._ground.is_main:  # the same records were looked at before; only a new column is news
            drift = [entry for entry in drift if entry.kind in _OF_COLUMNS]
        self._shared.append_rows(drift_log, drift_rows(batch, drift, self._clock()))
