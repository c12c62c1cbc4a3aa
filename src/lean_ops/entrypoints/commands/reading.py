"""`status`, `errors`, `drift`, `history`, `trace` and `query`: they only read, start no JVM and create nothing."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import UTC, date, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lean_ops.entrypoints.context import app_of
from lean_ops.model.errors import WrongUseError
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from lean_ops.ledger.curated_fates import CuratedError, RowFate
    from lean_ops.ledger.fates import CopyFate, ParseError
    from lean_ops.ledger.status import TopicStatus
    from lean_ops.ledger.trace import Trace
    from lean_ops.state.port import StateStore
    from lean_ops.wiring import Services

_TopicArgument = Annotated[str | None, typer.Argument(metavar="[TOPIC]", help="Only this topic.")]
_Limit = Annotated[int, typer.Option(min=1, help="At most this many rows, the newest.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("status")(status)
    app.command("errors")(errors)
    app.command("drift")(drift)
    app.command("history")(history)
    app.command("trace")(trace)
    app.command("query")(query)


def status(ctx: typer.Context) -> None:
    """Every topic: its gate, rows, what is pending, the checkpoint, and who works on it."""
    from lean_ops.ledger.status import lake_status, lease_holders

    call = app_of(ctx)
    services = call.services_with_lake()
    settings = services.settings
    is_gone = services.presence.is_gone
    holders = {} if services.on_aws else lease_holders(settings.state_file, services.clock(), is_gone)
    topics = lake_status(services.lake.file, settings.names, existing_state(services), holders)
    rows = [asdict(topic) if call.console.as_json else _status_line(topic) for topic in topics]
    call.console.rows("topics", rows, _telling_columns(rows))


def errors(ctx: typer.Context, topic: _TopicArgument = None, limit: _Limit = 20) -> None:
    """What was refused: dead letters, parse errors and curated errors, with totals per type."""
    from lean_ops.ledger.reading import LedgerReader

    call = app_of(ctx)
    services = call.services_with_lake()
    name = known_topic(services, topic)
    report = LedgerReader(services.lake.file, services.settings.names).errors(name, limit)
    if call.console.as_json:
        call.console.document({"totals": report.totals, "errors": report.newest})
    else:
        call.console.rows("errors by type", report.totals)
        of_all = () if name else ("topic_name",)
        columns = ("occurred_at", "table", *of_all, "error_type", "error_message", "message_id")
        call.console.rows("newest errors", report.newest, columns)


def drift(ctx: typer.Context, topic: _TopicArgument = None, limit: _Limit = 20) -> None:
    """What changed in the payloads: new columns, collisions, types."""
    from lean_ops.ledger.reading import LedgerReader

    call = app_of(ctx)
    services = call.services_with_lake()
    name = known_topic(services, topic)
    rows = LedgerReader(services.lake.file, services.settings.names).drift(name, limit)
    call.console.rows("drift", rows, _telling_columns(rows, leave_out={"batch_id"}))


def history(ctx: typer.Context, topic: _TopicArgument = None, limit: _Limit = 20) -> None:
    """The runs: what each batch did, how long it took, why it failed."""
    from lean_ops.ledger.reading import LedgerReader

    call = app_of(ctx)
    services = call.services_with_lake()
    name = known_topic(services, topic)
    rows = LedgerReader(services.lake.file, services.settings.names).history(name, limit)
    call.console.rows("runs", rows, _telling_columns(rows, leave_out={"ended_at", "batch_id", "run_id", "engine"}))


def trace(
    ctx: typer.Context,
    message_id: Annotated[str | None, typer.Argument(metavar="[MESSAGE_ID]", help="The message to look for.")] = None,
    key: Annotated[str | None, typer.Option(help="Look for all messages with this idempotency key.")] = None,
    topic: Annotated[str | None, typer.Option(help="Look in this topic only.")] = None,
) -> None:
    """Every copy of a message: where it got to, why not further, and the snapshot that wrote it."""
    from lean_ops.ledger.trace import Tracer, Wanted

    call = app_of(ctx)
    if (message_id is None) == (key is None):
        raise WrongUseError("what to trace is not clear", expected="either MESSAGE_ID or --key KEY")
    services = call.services_with_lake()
    wanted = Wanted.key(key) if key is not None else Wanted.message(message_id or "")
    tracer = Tracer(services.lake.file, services.settings.names, existing_state(services))
    story = tracer.trace(wanted, parse_topic(topic) if topic is not None else None)
    if call.console.as_json:
        call.console.document(trace_document(story))
    else:
        for line in trace_lines(story):
            call.console.say(line)


def query(
    ctx: typer.Context, sql: Annotated[str, typer.Argument(help="One SELECT over raw., standardized., curated., ops.")]
) -> None:
    """Read-only SQL over every zone, e.g. "SELECT count(*) FROM raw.events"."""
    from lean_ops.lake.query import QuerySession

    call = app_of(ctx)
    services = call.services_with_lake()
    rows = QuerySession(services.settings.names, services.lake.file).query(sql)
    call.console.rows("rows", [{name: _plain(value) for name, value in row.items()} for row in rows])


# what reading needs to find


def existing_state(services: Services) -> StateStore | None:
    """The state store; None if a home has none yet, because opening it would make one."""
    return services.state if services.on_aws or services.settings.state_file.is_file() else None


def known_topic(services: Services, topic: str | None) -> str | None:
    """The topic by its own name; WrongUseError with near names if nobody knows it."""
    from difflib import get_close_matches

    from lean_ops.ledger.status import topics_of

    if topic is None:
        return None
    name = parse_topic(topic)
    known = topics_of(services.lake.file, services.settings.names, existing_state(services))
    if name not in known:
        near = get_close_matches(name, known) or known[:5]
        raise WrongUseError(
            "there is no such topic",
            where=f"topic {topic!r}",
            expected=f"one like {', '.join(near)}" if near else None,
            remedy="`lean-ops status` lists all topics.",
        )
    return name


# how it looks


def _telling_columns(rows: Sequence[Mapping[str, Any]], leave_out: Container[str] = ()) -> list[str]:
    """The columns that say something in at least one row; `leave_out` is for machines."""
    names = [name for name in (rows[0] if rows else ()) if name not in leave_out]
    return [name for name in names if any(row[name] not in {None, ""} for row in rows)]


def _status_line(topic: TopicStatus) -> dict[str, Any]:
    """A topic in words that fit beside each other on a screen."""
    return {
        "topic": topic.topic,
        "gate": topic.gate,
        "raw": topic.raw_rows,
        "standardized": topic.standardized_rows,
        "curated": topic.curated_rows,
        "pending": topic.pending,
        "waiting": topic.snapshots_waiting,
        "to curate": topic.curated_pending,
        "checkpoint": topic.checkpoint_at.strftime("%m-%d %H:%M") if topic.checkpoint_at else None,
        "open batch": ", ".join(batch for batch in (topic.open_batch, topic.curated_open_batch) if batch),
        "failures": topic.failures or None,
        "curate failures": topic.curated_failures or None,
        "lease": topic.lease,
        "problem": topic.problem,
    }


def _plain(value: Any) -> Any:
    """A value that JSON has a form for; NaN and infinities have none, so they are named."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def trace_document(story: Trace) -> dict[str, Any]:
    """A trace for a machine."""
    hidden = {"payload", "processed"}
    copies = [
        {**asdict(found.copy), "zone": "raw", "fate": str(found.fate), "reason": found.reason} for found in story.copies
    ]
    return {
        story.wanted.column: story.wanted.value,
        "copies": [{name: value for name, value in copy.items() if name not in hidden} for copy in copies],
        "standardized": [asdict(row) for row in story.standardized],
        "parse_errors": [asdict(row) for row in story.parse_errors],
        "curated": [_row_fate(found) for found in story.curated],
        "curated_errors": [asdict(row) for row in story.curated_errors],
        "dead_letters": list(story.dead_letters),
    }


def _row_fate(found: RowFate) -> dict[str, Any]:
    """A Standardized row's fate; its snapshot is one of Curated, or of its errors for a curated error."""
    row, version = found.row, found.version
    return {
        "topic": row.topic,
        "message_id": row.message_id,
        "publish_time": row.publish_time,
        "key": row.idempotency_key,
        "zone": "standardized",
        "fate": str(found.fate),
        "reason": found.reason,
        "current": found.is_current,
        "batch_id": found.batch_id,
        "snapshot_id": found.snapshot_id,
        "first_seen_ts": version.first_seen_ts if version else None,
        "last_updated_ts": version.last_updated_ts if version else None,
        "schema_version": version.schema_version if version else None,
    }


def trace_lines(story: Trace) -> list[str]:
    """The story as indented lines, by message."""
    lines = [f"[bold]{escape(story.wanted.column)} {escape(story.wanted.value)}[/bold]"]
    for message, copies in groupby(story.copies, lambda found: found.copy.message):
        topic, message_id, published = message
        lines.append(f"  topic {topic}: message {escape(message_id)}, published {_moment(published)}")
        lines += [line for found in copies for line in _copy_lines(found)]
        lines += [line for found in story.curated if found.row.message == message for line in _row_lines(found)]
    lines += [_error_line("parse", error) for error in story.parse_errors]
    for refused in story.curated_errors:
        asked = (f"fields {', '.join(refused.error_fields)}", f"schema {refused.schema_version}")
        lines.append(_error_line("curated", refused, *asked))
    for letter in story.dead_letters:
        replayed = "" if letter["replay_status"] in {None, "NEW"} else f", replay {letter['replay_status']}"
        words = f"{letter['error_type']}: {letter['error_message']} (topic {letter['topic_name']}{replayed})"
        lines.append(f"  dead letter: {escape(words)}")
        lines.append(f"    archived {_moment(letter['archived_at'])} at {escape(str(letter['archive_path']))}")
    return lines + (_version_lines(story.curated) if story.wanted.column == "idempotency_key" else [])


def _copy_lines(found: CopyFate) -> list[str]:
    copy = found.copy
    landed = _moment(datetime.fromtimestamp(copy.ingestion_ts, UTC)) if copy.ingestion_ts is not None else "-"
    return [
        f"    raw copy ingested {landed}, snapshot {copy.snapshot_id}",
        f"      [bold]{found.fate}[/bold]: {escape(found.reason)}",
    ]


def _row_lines(found: RowFate) -> list[str]:
    """A Standardized row and its fate; the reason of a current row has its snapshot already."""
    shown = "" if found.is_current or found.snapshot_id is None else f" (snapshot {found.snapshot_id})"
    lines = [
        f"    standardized row of batch {escape(str(found.row.batch_id))}, snapshot {found.row.snapshot_id}",
        f"      [bold]{found.fate}[/bold]: {escape(found.reason)}{shown}",
    ]
    if found.version is not None:
        seen, updated = _moment(found.version.first_seen_ts), _moment(found.version.last_updated_ts)
        lines.append(f"        key first seen {seen}, row written {updated}, schema {found.version.schema_version}")
    return lines


def _error_line(kind: str, error: ParseError | CuratedError, *more: str) -> str:
    details = ", ".join((*more, f"batch {error.batch_id}", f"replay {error.replay_status}"))
    words = f"{error.error_type}: {error.error_message} ({details})"
    return f"  {kind} error of message {escape(error.message_id)}: {escape(words)}"


def _version_lines(versions: Sequence[RowFate]) -> list[str]:
    """The key's versions at a glance."""
    lines = []
    for topic, found in groupby(versions, lambda version: version.row.topic):
        lines.append(f"  versions of the key in topic {topic}, newest last")
        lines += [f"    {escape(one.row.message_id)}: {one.fate}{' (current)' * one.is_current}" for one in found]
    return lines


def _moment(value: date | None) -> str:
    return value.isoformat().replace("+00:00", "Z") if value is not None else "-"
