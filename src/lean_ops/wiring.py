"""The one place where parts are put together. Nothing is opened before it is used."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lean_ops.lake.catalog import CATALOG_NAME, Lake
from lean_ops.lake.shared import SharedTables
from lean_ops.model.curated_layout import CURATED_RULE
from lean_ops.state.presence import Anywhere, Presence
from lean_ops.state.sqlite import SqliteStateStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyspark.sql import SparkSession

    from lean_ops.aws.letter_parts import LetterParts
    from lean_ops.aws.parts import AwsParts
    from lean_ops.curate.hop import CurateHop
    from lean_ops.govern.gate import RegistryGate
    from lean_ops.govern.store import SchemaStore
    from lean_ops.govern.submit import Submissions
    from lean_ops.ingest.archive import Archive
    from lean_ops.ingest.dead_letters import DeadLetters
    from lean_ops.ingest.intake import Intake, LandedFlush
    from lean_ops.ingest.landing import Landing
    from lean_ops.ingest.recovery import FlushRecovery
    from lean_ops.lake.difference import RowDifference
    from lean_ops.lake.ground import Ground
    from lean_ops.lake.layout import LayoutMove
    from lean_ops.lake.schema_tables import SchemaTables
    from lean_ops.lake.snapshots import History
    from lean_ops.lake.spark import SparkSessions
    from lean_ops.lake.staging import Stage
    from lean_ops.ledger.books import Alert, Books
    from lean_ops.ledger.reconcile import Reconciler
    from lean_ops.ledger.status import StateReader
    from lean_ops.model.batch import Batch, Zone
    from lean_ops.model.curated_layout import LayoutRule
    from lean_ops.model.registry import Gate
    from lean_ops.model.schema import Schema
    from lean_ops.operate.batch import BatchRunner, Hop, Listener
    from lean_ops.operate.circuit_breaker import Watched
    from lean_ops.operate.drain_dlq import Drained
    from lean_ops.operate.health import CloudParts
    from lean_ops.operate.leases import LeaseKeeper
    from lean_ops.operate.plan import Planner, RunPlan
    from lean_ops.operate.rebuild import Rebuilder
    from lean_ops.operate.rebuild_switch import RebuildSwitch
    from lean_ops.operate.relayout import Relayout
    from lean_ops.operate.replay_dlq import DlqReplay
    from lean_ops.operate.run import Run
    from lean_ops.operate.watch import Watch
    from lean_ops.settings import LoadedSettings, Settings
    from lean_ops.standardize.latest import LatestViews
    from lean_ops.state.port import StateStore


def utc_now() -> datetime:
    """The wall clock; passed in everywhere so that tests can hold it still."""
    return datetime.now(UTC)


def _say_nothing(_: object) -> None:
    """Nobody waits for news."""


@dataclass
class Services:
    """The parts of the product for one home, or for one environment on AWS."""

    loaded: LoadedSettings
    clock: Callable[[], datetime] = field(default=utc_now)
    notice: Callable[[str], None] = field(default=_say_nothing)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings

    @property
    def on_aws(self) -> bool:
        """Whether the parts are AWS' and not a home's."""
        return self.settings.profile == "aws"

    @cached_property
    def _aws(self) -> AwsParts:
        from lean_ops.aws.parts import AwsParts

        return AwsParts(self.settings)

    @cached_property
    def presence(self) -> Presence | Anywhere:
        """This process as the others see it."""
        return Anywhere() if self.on_aws else Presence(self.settings.home / "runners")

    @cached_property
    def state(self) -> StateStore:
        """Checkpoints, leases and the registry."""
        if self.on_aws:
            return self._aws.state
        return SqliteStateStore(self.settings.state_file, self.settings.lease_seconds, self.presence.is_gone)

    @cached_property
    def lake(self) -> Lake:
        """The Iceberg tables."""
        return Lake(self.settings, self._aws.place(CATALOG_NAME) if self.on_aws else None)

    @cached_property
    def shared(self) -> SharedTables:
        """The one committer of the shared tables."""
        return SharedTables(self.lake)

    @cached_property
    def archive(self) -> Archive:
        """What ingestion refused, whole."""
        from lean_ops.ingest.archive import Archive

        return Archive(self.settings.archive_dir)

    @cached_property
    def landing(self) -> Landing:
        """Commits what was ingested."""
        from lean_ops.ingest.landing import Landing

        return Landing(self.lake, self.shared, self.archive, self.state, self.presence.announce, self.clock)

    @cached_property
    def flush_recovery(self) -> FlushRecovery:
        """Finishes what an ingestion that crashed left undone."""
        from lean_ops.ingest.recovery import FlushRecovery

        return FlushRecovery(
            self.lake, self.shared, self.archive, self.landing, self.state, self.presence.is_gone, self.clock
        )

    def intake(
        self,
        topic: str,
        source_name: str,
        on_flush: Callable[[LandedFlush], None] = _say_nothing,
        on_read: Callable[[int], None] = _say_nothing,
    ) -> Intake:
        """One call of ingestion for a topic that came under a source name."""
        from lean_ops.ingest.intake import Intake

        return Intake(
            self.settings,
            self.landing,
            self.clock,
            new_id=lambda: uuid.uuid4().hex,
            prepare=lambda: self.prepare_topic(topic, source_name),
            on_flush=on_flush,
            on_read=on_read,
        )

    def prepare_topic(self, topic: str, source_name: str) -> None:
        """Before the first write: the name is this source's, the books are there, and earlier work is finished."""
        self.state.claim_name(topic, source_name, self.clock())
        names = self.lake.names
        if not all(self.lake.exists(name) for name in (names.dlq_errors, names.ops("reconciliation_log"))):
            self.lake.ensure_shared()
        self.flush_recovery.finish_flushes(topic)

    @cached_property
    def _letters(self) -> LetterParts:
        from lean_ops.aws.letter_parts import LetterParts

        return LetterParts(self.settings)

    def dlq_replay(self) -> DlqReplay:
        """What brings dead letters through ingestion again."""
        from lean_ops.operate.replay_dlq import DlqReplay
        from lean_ops.state.sqlite_errors import SqliteErrorTracker

        return DlqReplay(
            self.lake,
            self.landing,
            self._letters.archive if self.on_aws else self.archive,
            self._letters.tracker if self.on_aws else SqliteErrorTracker(self.settings.state_file),
            lambda topic: self.prepare_topic(topic, topic),
            self.settings.max_body_bytes,
            self.settings.flush_bytes,
            self.clock,
            new_id=lambda: uuid.uuid4().hex,
        )

    def dead_letters(self) -> DeadLetters:
        """What takes the letters of the dead-letter queue to their end."""
        from lean_ops.ingest.dead_letters import KEY, DeadLetters
        from lean_ops.lake.once import OnceTable

        table = OnceTable(self.lake, self.lake.names.dlq_errors, KEY)
        letters = self._letters
        return DeadLetters(letters.archive, letters.tracker, table, letters.topic_of_arn, self.clock)

    def drain_dlq(self, has_time: Callable[[], bool]) -> Drained:
        """Take every dead letter that can be had now."""
        from lean_ops.operate.drain_dlq import drain

        return drain(self._letters.queue, self.dead_letters(), has_time)

    def watch_circuits(self) -> Watched:
        """Look at every topic's circuit, and do what has to be done."""
        from lean_ops.operate.circuit_breaker import CircuitBreaker

        def tell(alert: Alert) -> None:
            self.books.raise_alert(alert, self.clock(), repeated=True)

        breaker = CircuitBreaker(self._letters.circuits, self._letters.mappings, tell, self.clock)
        return breaker.watch(self._letters.topic_queues())

    @cached_property
    def books(self) -> Books:
        """The ledger, the run history and the alerts."""
        from lean_ops.ledger.books import Books

        topic = self._letters.alert_topic if self.settings.alert_topic_arn else None
        return Books(self.shared, self.settings.names, topic.publish if topic else None)

    @cached_property
    def sessions(self) -> SparkSessions:
        """Spark, once somebody asks for a session."""
        from lean_ops.lake.spark import SparkSessions

        if self.on_aws:
            _ = self._aws  # makes the region known, which Spark is told, too
        return SparkSessions(self.settings, self.notice)

    def batch_runner(
        self,
        on_step: Listener | None = None,
        schema_of: Callable[[str, str], Schema] | None = None,
    ) -> BatchRunner:
        """What takes a batch of either hop from intent to checkpoint."""
        from lean_ops.operate.batch import BatchRunner, no_step

        hops = self._hops(schema_of or self.gate.schema_of_version)
        return BatchRunner(self.lake, self.books, self.state, hops, self.clock, on_step or no_step)

    def _hops(self, schema_of: Callable[[str, str], Schema], ground: Ground | None = None) -> dict[Zone, Hop]:
        """Both hops, on main or on another ground."""
        from lean_ops.model.batch import Zone
        from lean_ops.standardize.hop import StandardizeHop

        limit = self.settings.column_limit
        return {
            Zone.STANDARDIZED: StandardizeHop(
                self.lake, self.shared, self.sessions, self._latest_views, limit, self.clock, ground
            ),
            Zone.CURATED: self._curate_hop(schema_of, ground),
        }

    def rebuilder(
        self,
        on_step: Callable[[str], None] = _say_nothing,
        gate: Callable[[str], Gate] | None = None,
        schema_of: Callable[[str, str], Schema] | None = None,
        patience_seconds: float | None = None,
    ) -> Rebuilder:
        """What builds topics again; it waits for a topic's lease longer than a lease lives that nobody renews."""
        from lean_ops.operate.rebuild import Rebuilder, RebuildParts
        from lean_ops.operate.rebuild_build import BuildParts

        known = schema_of or self.gate.schema_of_version

        def compare(stage: Stage, key: Sequence[str], left_out: Collection[str]) -> RowDifference:
            from lean_ops.lake.difference import compare_rows

            return compare_rows(self._session_to_compare(stage), stage, key, left_out)

        def take_over(stage: Stage, batch: Batch) -> bool:
            from lean_ops.curate.carry import take_over_first_times

            return take_over_first_times(self._session_to_compare(stage), stage, batch)

        def hops(ground: Ground) -> dict[Zone, Hop]:
            return self._hops(known, ground)

        parts = RebuildParts(
            BuildParts(self.lake, self.shared, self.state, hops, compare, take_over, self.clock, on_step),
            self.rebuild_switch(on_step, known),
            self.batch_runner(schema_of=known),
            self.books,
            self.state,
            self.lease_keeper(),
            gate or self.gate.gate_to_rebuild,
            lambda topic, version: self.schema_tables.ensure(known(topic, version)),
            lambda topic: self.reconciler(self.state).reconcile([topic])[0],
            self.clock,
            self.settings.lease_seconds * 4 if patience_seconds is None else patience_seconds,
        )
        return Rebuilder(parts)

    def _session_to_compare(self, stage: Stage) -> SparkSession:
        """A session that is set up for all rows of main and of a branch."""
        from lean_ops.lake.snapshots import history_of
        from lean_ops.lake.spark import prepare_for

        session, history = self.sessions.mine(), history_of(self.lake.load(stage.name))
        prepare_for(session, history.live_rows + history.snapshots[stage.base].count("total-records"))
        return session

    def rebuild_switch(
        self, on_step: Callable[[str], None] = _say_nothing, schema_of: Callable[[str, str], Schema] | None = None
    ) -> RebuildSwitch:
        """What puts a rebuild in the place of the live tables, or finishes that after a crash."""
        from lean_ops.operate.rebuild_switch import RebuildSwitch

        batches = self.batch_runner(lambda batch, step: on_step(f"{batch.zone} {step}"), schema_of)
        return RebuildSwitch(self.lake, self.state, batches, self.clock, on_step)

    @cached_property
    def _latest_views(self) -> LatestViews:
        """Who makes the views `{topic}_latest`: Glue has Athena's kind, other catalogs Iceberg's."""
        from lean_ops.standardize.latest import IcebergViews, QueriedViews

        if self.on_aws and self.settings.catalog == "glue":
            return QueriedViews(self._aws.athena_views, self.settings.names)
        return IcebergViews(self.sessions, self.settings.names)

    def relayout(
        self,
        on_step: Listener | None = None,
        schema_of: Callable[[str, str], Schema] | None = None,
        rule: LayoutRule = CURATED_RULE,
    ) -> Relayout:
        """What moves Curated tables that outgrew their layout."""
        from lean_ops.operate.batch import no_step
        from lean_ops.operate.relayout import Relayout

        def write_anew(move: LayoutMove, rows: int, properties: Mapping[str, str]) -> None:
            from lean_ops.curate.move import write_anew

            write_anew(self.lake, self.sessions.mine, move, rows, properties)

        return Relayout(
            self.lake,
            self.books,
            self.state,
            schema_of or self.gate.schema_of_version,
            write_anew,
            None if self.settings.curated_buckets else rule,
            self.clock,
            on_step or no_step,
        )

    def _curate_hop(self, schema_of: Callable[[str, str], Schema], ground: Ground | None) -> CurateHop:
        from lean_ops.curate.hop import CurateHop
        from lean_ops.curate.protect import PiiKey

        secret = self._pii_secret()
        key = PiiKey.of(secret) if secret else None
        parts = (self.lake, self.shared, self.sessions, self.schema_tables)
        return CurateHop(*parts, schema_of, key, self.clock, ground)

    def _pii_secret(self) -> str | None:
        if self.settings.pii_key_secret_arn is not None:
            return self._aws.pii_key()
        return self.settings.pii_key.get_secret_value() if self.settings.pii_key else None

    @cached_property
    def schemas(self) -> SchemaStore:
        """The schema files of all topics."""
        from lean_ops.govern.lease_lock import LeaseLock
        from lean_ops.govern.store import SchemaFolder, SchemaStore

        if self.on_aws:
            lock = LeaseLock(self.state, self.clock)
            return SchemaStore(self._aws.schema_files, lock, takes_uploads=True)
        return SchemaFolder(self.settings.schemas_dir)

    @cached_property
    def gate(self) -> RegistryGate:
        """Which topics may be processed."""
        from lean_ops.govern.gate import RegistryGate

        return RegistryGate(self.state, self.schemas)

    @cached_property
    def submissions(self) -> Submissions:
        """Where schemas are handed in."""
        from lean_ops.govern.submit import Submissions

        can_hash = (self.settings.pii_key or self.settings.pii_key_secret_arn) is not None
        return Submissions(self.schemas, self.state, self.schema_tables, self._record_schema_version, can_hash=can_hash)

    @cached_property
    def schema_tables(self) -> SchemaTables:
        """The zone tables as schemas ask for them."""
        from lean_ops.lake.schema_tables import SchemaTables

        return SchemaTables(self.lake, self.settings.curated_buckets)

    def _record_schema_version(self, row: Mapping[str, Any]) -> None:
        self.lake.ensure_shared()
        self.shared.append_rows(self.lake.names.ops("schema_versions"), [row])

    def reconciler(self, state: StateReader | None) -> Reconciler:
        """What compares the books with the tables; `state` is None where there is no store yet."""
        from lean_ops.ledger.moment import CommitReaders
        from lean_ops.ledger.reconcile import Reconciler
        from lean_ops.operate.intent import open_batch, published_batch

        readers = CommitReaders(published_batch, open_batch, self._unsettled_flushes)
        return Reconciler(self.lake.file, self.settings.names, state, readers, self.clock, delivered=self.on_aws)

    def _unsettled_flushes(self, topic: str, raw: History) -> list[dict[str, Any]]:
        from lean_ops.ingest.flush import Flush
        from lean_ops.ingest.recovery import unsettled_snapshots

        return [Flush.of_snapshot(topic, snapshot).ledger_row(self.clock()) for snapshot in unsettled_snapshots(raw)]

    @cached_property
    def planner(self) -> Planner:
        """What decides what a run would do, without Spark."""
        from lean_ops.operate.plan import Planner

        return Planner(self.lake.file, self.settings.names, self.state, self.gate.gates)

    def plan_topics(self, topics: Sequence[str]) -> RunPlan:
        """The plan for these topics alone, looking at no other; for all there are, if none is named."""
        from lean_ops.operate.group import plan_group

        if not topics:
            return self.planner.plan()
        return plan_group(self.lake.file, self.settings.names, self.state, topics)

    def cloud_parts(self) -> CloudParts:
        """The parts of an environment on AWS, to be looked at."""
        from lean_ops.operate.health import CloudParts

        return CloudParts(self.state, self.lake.file, self.settings.names, self.schemas)

    def watch(self) -> Watch:
        """What looks for what a person should know, and tells it once."""
        from lean_ops.lake.restate import restate
        from lean_ops.ledger.standing import StandingAlerts
        from lean_ops.operate.watch import Watch

        names, catalog = self.settings.names, self.lake.file

        def close(topic: str, ids: Sequence[str], now: datetime) -> None:
            changes = {alert_id: {"closed_at": now} for alert_id in ids}
            restate(self.lake, names.ops("alerts"), topic, "alert_id", changes)

        alerts = StandingAlerts(self.books, catalog, names, close)
        return Watch(catalog, names, self.state, alerts, self.books, self.clock)

    def lease_keeper(self) -> LeaseKeeper:
        """What takes leases for this process and renews them."""
        from lean_ops.operate.leases import LeaseKeeper

        return LeaseKeeper(self.state, self.presence.announce(), self.clock, self.settings.lease_seconds / 3)

    def new_run(self, on_step: Listener | None = None) -> Run:
        """A run with leases of its own; Spark starts with its first batch and stays until `close`."""
        from lean_ops.operate.hop_run import RunParts
        from lean_ops.operate.run import Run

        settings = self.settings
        keeper = self.lease_keeper()
        parts = RunParts(
            self.batch_runner(on_step),
            self.books,
            self.state,
            keeper,
            self.gate.gate,
            self.planner.plan_hop,
            self.flush_recovery.finish_flushes,
            self.sessions.cancel_all,
            self.clock,
            self.sessions.failure,
            self.relayout(on_step).look_after,
            self.shared.gathering,
            self._tidy,
            self.rebuild_switch().finish,
        )
        return Run(parts, settings.workers, settings.failures_before_pause)

    def _tidy(self, run_id: str) -> None:
        """Put small files of shared tables together. On AWS many jobs write to them at once: there a job of its own."""
        from lean_ops.operate.tidy import Tidy

        if not self.on_aws:
            tables = tuple(self.settings.names.shared)
            Tidy(tables, self.shared.gather_small_files, self.books, self.clock).after_run(run_id)

    def close(self) -> None:
        """End what was started: Spark, and this process's presence. Parts that were never used stay unmade."""
        made = vars(self)
        if "sessions" in made:
            self.sessions.stop()
        if "presence" in made:
            self.presence.leave()
