"""The lake against an oracle, message by message: what became of each body, asked of the tables' rows alone."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.lake.duck import views_of
from lean_ops.lake.table_files import open_table, plan
from lean_ops.ledger.finding import OneOf
from lean_ops.ledger.lines import LEDGER, make_lines
from lean_ops.ledger.moment import files_of, has_source, no_files, read_files, shown_batches, tables_of, take_moment
from lean_ops.ledger.reconcile import ledger_files, problems_of
from lean_ops.ledger.recount_checks import make_refused, parts_by, slices
from lean_ops.ledger.verify_letters import LetterQuestion
from lean_ops.ledger.verify_messages import MessageQuestion
from lean_ops.ledger.verify_result import Verification, together
from lean_ops.ledger.verify_values import told_columns
from lean_ops.model.batch import Zone
from lean_ops.model.errors import LeanOpsError, TerminalError, WrongUseError
from lean_ops.model.tables import CURATED_ERRORS, DLQ_ERRORS, ENVELOPE, PARSE_ERRORS, TableShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

    from lean_ops.lake.table_files import TableFiles
    from lean_ops.ledger.moment import Moment, ShownBatch, TopicTables
    from lean_ops.ledger.oracle import Oracle
    from lean_ops.ledger.reconcile import Reconciler
    from lean_ops.ledger.verify_messages import Contradiction
    from lean_ops.ledger.verify_result import Compared
    from lean_ops.ledger.verify_values import ToldColumns, Unfit
    from lean_ops.model.tables import Names

    Connection = duckdb.DuckDBPyConnection

_ENVELOPE: Final = TableShape(ENVELOPE, ())
# A message takes so many times the memory here that it takes in a recount: more is asked of it at once.
_WEIGHT: Final = 4


@dataclass(frozen=True, slots=True)
class Verifier:
    """Compares an oracle's topics with the lake, one at a time, with what `parts` reads by; writes nothing.

    `show` is how many differences are told in full; with `redelivered` more copies than told are duplicates, and with
    `complete` a message that the oracle does not know is a difference.
    """

    parts: Reconciler
    oracle: Oracle
    show: int = 10
    redelivered: bool = False
    complete: bool = False

    def verify(self, on_topic: Callable[[str], None] = lambda _: None) -> Verification:
        """All topics of the oracle. One that can't be read has a problem and hides no other."""
        done: list[Compared] = []
        problems: dict[str, str] = {}
        for topic in self.oracle.topics:
            on_topic(topic)
            try:
                done.append(self._topic(topic))
            except WrongUseError:
                raise
            except LeanOpsError as error:
                problems[topic] = str(error)
        return Verification.of(together(done, self.show), self.complete, problems)

    def _topic(self, topic: str) -> Compared:
        parts = self.parts
        moment = take_moment(parts.catalog, parts.names, parts.state, [topic])
        tables = tables_of(moment, parts.names, topic)
        _refuse_unreadable(tables)
        shown = shown_batches(tables, parts.readers, parts.clock())
        with _TopicLake(moment, parts.names, tables, shown).opened() as (connection, curated):
            connection.register("told", self.oracle.topics[topic])
            letters = LetterQuestion(topic, self.redelivered, self.complete, self.show).compared(connection)
            columns = told_columns(connection, curated.columns)
            conditions = parts_by("message_id", slices(_WEIGHT * (_rows(tables) + len(self.oracle.topics[topic]))))
            messages = [self._part(connection, tables, columns, condition) for condition in conditions]
        return together([letters, *messages], self.show)

    def _part(self, connection: Connection, tables: TopicTables, columns: ToldColumns, condition: str) -> Compared:
        question = MessageQuestion(tables.topic, tables.is_curated, self.redelivered, self.complete, self.show)
        unfit = columns.make_wrong_values(connection, condition)
        if unfit is not None:
            raise self._unfit(unfit)
        contradiction = question.make_compared(connection, condition)
        if contradiction is not None:
            raise self._contradiction(contradiction)
        return question.compared(connection, lambda places: columns.wrong_values(connection, places))

    def _unfit(self, unfit: Unfit) -> WrongUseError:
        column = unfit.column
        return WrongUseError(
            "an expected value can't be one of its column",
            where=f"{self.oracle.where(unfit.place)}, curated.{column.name}",
            found=f"{unfit.text[:100]!a}",
            expected=f"a text that is a {column.type}",
        )

    def _contradiction(self, found: Contradiction) -> WrongUseError:
        first, second = (self.oracle.where(place) for place in found.places)
        return WrongUseError(
            f"two fates of one message, {found.message_id!a}",
            where=second,
            found=f"{found.fates[1]}, and {found.fates[0]} at {first}",
            expected="one line that says what became of the first copy; of the others that they are duplicates",
        )


def _refuse_unreadable(tables: TopicTables) -> None:
    for zone in Zone:
        for problem in problems_of(tables, zone):
            raise TerminalError("the rows can't be read", where=tables.tables[zone].name, found=problem)
        if not has_source(tables, zone):
            source = tables.tables[zone.source].name
            raise TerminalError("what its batches have read is gone", where=tables.tables[zone].name, found=source)


def _rows(tables: TopicTables) -> int:
    """About how many rows a comparison reads: RAW and Standardized are read as they are and as they were read."""
    return sum((1 if zone is Zone.CURATED else 2) * (tables.tables[zone].rows or 0) for zone in Zone)


@dataclass(frozen=True, slots=True)
class _TopicLake:
    """One topic's tables at one moment."""

    moment: Moment
    names: Names
    tables: TopicTables
    shown: list[ShownBatch]

    @contextmanager
    def opened(self) -> Iterator[tuple[Connection, TableFiles]]:
        """A connection to all rows of the topic, and Curated's files; what can't be read is a LeanOpsError."""
        import duckdb

        curated = self._curated()
        wanted = OneOf("topic_name", (self.tables.topic,))
        try:
            with views_of({"curated": curated, **self._zones(), **self._shared(wanted)}) as connection:
                make_lines(connection, self.shown, wanted.condition)
                self._make_refused(connection, "parse_errors", Zone.STANDARDIZED, "parse_refused")
                self._make_refused(connection, "curated_errors", Zone.CURATED, "curated_refused")
                yield connection, curated
        except (OSError, duckdb.Error) as error:
            where = f"topic {self.tables.topic}"
            raise TerminalError("the rows can't be read", where=where, found=str(error).strip()) from error

    def _curated(self) -> TableFiles:
        location = self.tables.tables[Zone.CURATED].location
        return no_files(_ENVELOPE) if location is None else plan(open_table(location))

    def _zones(self) -> dict[str, TableFiles]:
        """RAW and Standardized as they are, and what the next hop has read of them."""
        tables = self.tables.tables
        return {
            "raw": files_of(tables[Zone.RAW].location, _ENVELOPE),
            "raw_read": read_files(self.tables, Zone.STANDARDIZED, _ENVELOPE),
            "standardized": files_of(tables[Zone.STANDARDIZED].location, _ENVELOPE),
            "standardized_read": read_files(self.tables, Zone.CURATED, _ENVELOPE),
        }

    def _shared(self, wanted: OneOf) -> dict[str, TableFiles]:
        shared, names = self.moment.shared, self.names
        return {
            LEDGER: ledger_files(self.moment, names, wanted),
            "dlq_errors": files_of(shared.get(names.dlq_errors), DLQ_ERRORS, wanted.filter),
            "parse_errors": files_of(shared.get(names.parse_errors), PARSE_ERRORS, wanted.filter),
            "curated_errors": files_of(shared.get(names.curated_errors), CURATED_ERRORS, wanted.filter),
        }

    def _make_refused(self, connection: Connection, table: str, zone: Zone, view: str) -> None:
        checkpoint = self.tables.tables[zone].checkpoint
        make_refused(connection, table, self.tables.topic, zone, checkpoint.batch_id if checkpoint else None, view)
