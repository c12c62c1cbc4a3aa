"""Standardized rows as Curated sees them, as SQL: texts found, judged, and the newest version of each key."""

# ruff: noqa: S608  every name is quoted, and every text is written by its characters' codes

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.lake import sql
from lean_ops.model.tables import BATCH_ID, ENVELOPE_NAMES, FIRST_SEEN, LAST_UPDATED, SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from lean_ops.curate.protect import PiiKey
    from lean_ops.model.batch import Batch
    from lean_ops.model.schema import Schema

KEY: Final = "idempotency_key"
# Columns of our own have a space in their names, which keeps them apart from every name that a schema can give.
_JUDGED: Final = "`judged row`"
_REFUSED: Final = f"{_JUDGED}.`refused row`"
_PLACE: Final = "`place among versions`"
_VALUES: Final = "`hash of values`"
_LIVE: Final = "`live row`"
_SELECTED: Final = f"SELECT {', '.join(ENVELOPE_NAMES)}, {_JUDGED}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a batch's rows are judged by: the schema, the key of personal data, and the time of processing."""

    batch: Batch
    schema: Schema
    key: PiiKey | None
    now: datetime

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of Curated that a batch writes."""
        return (*ENVELOPE_NAMES, *self.schema.payload_columns, *_audit(self))


def _audit(judgement: Judgement) -> dict[str, str]:
    now, batch = sql.moment(judgement.now), judgement.batch
    return {
        FIRST_SEEN: now,
        LAST_UPDATED: now,
        SCHEMA_VERSION: sql.text(batch.schema_version),
        BATCH_ID: sql.text(batch.batch_id),
    }


def judged(standardized: str, judge: str, sources: Iterable[str], *, in_one_task: bool = False) -> str:
    """Envelope, and what the judge makes of each row: the payload of a good one, the error row of a refused one."""
    arguments, hint = ", ".join((*ENVELOPE_NAMES, *sources)), "/*+ COALESCE(1) */ " if in_one_task else ""
    return f"SELECT {hint}{', '.join(ENVELOPE_NAMES)}, {judge}({arguments}) AS {_JUDGED} FROM {standardized}"


def refused_rows(judged: str) -> str:
    """What `errors` gets of the rows that break a rule."""
    return f"SELECT {_REFUSED}.* FROM ({judged}) WHERE {_REFUSED} IS NOT NULL"


def version_order(schema: Schema, columns: Mapping[str, str]) -> str:
    """What makes one version of a key newer than another, as SQL over the columns of a row.

    The version column counts first, if the schema names one; a row without a version counts as its publish_time.
    """
    time = columns["publish_time"]
    version = f"coalesce({columns[schema.version_column]}, {time})" if schema.version_column else time
    return f"struct({version}, {time}, {columns['ingestion_ts']}, {columns['message_id']})"


def newest_versions(judged: str, judgement: Judgement, newest: str) -> str:
    """One row per key, the newest good one: MERGE does not notice two new rows of one key by itself."""
    order = version_order(judgement.schema, values(judgement, "r"))
    place = f"row_number() OVER (PARTITION BY r.{KEY} ORDER BY {order} DESC) AS {_PLACE}"
    placed = f"SELECT r.*, {place} FROM ({judged}) r WHERE r.{_REFUSED} IS NULL"
    return f"{_SELECTED} FROM ({placed}) WHERE {newest}({_PLACE})"


def only_versions(judged: str, newest: str) -> str:
    """Good rows whose key no other row has: all of them are the newest of theirs."""
    return f"{_SELECTED} FROM (SELECT * FROM ({judged}) WHERE {_REFUSED} IS NULL) WHERE {newest}(1)"


def values(judgement: Judgement, row: str) -> dict[str, str]:
    """What each column of Curated gets, as SQL over an alias of newest versions.

    They are taken apart only where they are written: a SELECT that names all of them is planned with all of them.
    """
    envelope = {name: f"{row}.{name}" for name in ENVELOPE_NAMES}
    payload = {name: f"{row}.{_JUDGED}.{sql.name(name)}" for name in judgement.schema.payload_columns}
    return {**envelope, **payload, **_audit(judgement)}


def times_carried_over(newest: str, live: str, judgement: Judgement) -> str:
    """Rows of Curated, with the times of the live rows of their keys: first seen then; updated then, unless different.

    Should a key be there twice, its oldest row counts.
    """
    hashed = f"{values_of(judgement.schema)} AS {_VALUES}"
    lives = f"SELECT {KEY}, min(struct({FIRST_SEEN}, {LAST_UPDATED}, {hashed})) AS {_LIVE} FROM {live} GROUP BY {KEY}"
    unchanged = f"l.{_LIVE}.{_VALUES} = r.{_VALUES}"
    taken = {
        FIRST_SEEN: f"coalesce(l.{_LIVE}.{FIRST_SEEN}, r.{FIRST_SEEN})",
        LAST_UPDATED: f"CASE WHEN {unchanged} THEN l.{_LIVE}.{LAST_UPDATED} ELSE r.{LAST_UPDATED} END",
    }
    columns = (taken.get(name, f"r.{sql.name(name)}") + f" AS {sql.name(name)}" for name in judgement.columns)
    rows = ", ".join(f"{value} AS {sql.name(name)}" for name, value in values(judgement, "s").items())
    return (
        f"SELECT {', '.join(columns)} FROM (SELECT *, {hashed} FROM (SELECT {rows} FROM ({newest}) s)) r"
        f" LEFT JOIN ({lives}) l ON r.{KEY} = l.{KEY}"
    )


def values_of(schema: Schema) -> str:
    """A hash of all that a row of Curated says about its message, as SQL."""
    return sql.hash_of((*ENVELOPE_NAMES, *schema.payload_columns))


def all_keys_seen(standardized: str, seen: str) -> str:
    """Shows every key to a function, and brings nothing back."""
    return f"SELECT count(*) FROM {standardized} WHERE {seen}({KEY})"


def with_key(standardized: str, among: str) -> str:
    """The rows whose key is among some."""
    return f"(SELECT * FROM {standardized} WHERE {among}({KEY}))"


def without_key(standardized: str, among: str) -> str:
    """The other rows, those without a key among them."""
    return f"(SELECT * FROM {standardized} WHERE NOT {among}({KEY}))"
