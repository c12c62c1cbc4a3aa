"""`schema lint|submit|show|list|enable|disable`, `pause` and `resume`: a topic's schema and its gate."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lean_ops.entrypoints.console import Console
from lean_ops.entrypoints.context import app_of
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from lean_ops.govern.submit import Activation
    from lean_ops.model.problem import SchemaError
    from lean_ops.model.registry import RegistryItem
    from lean_ops.model.schema import PayloadColumn, Schema

TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    schema = typer.Typer(help="Schema files: check them, hand them in, look at them.", no_args_is_help=True)
    schema.command("lint")(lint)
    schema.command("submit")(submit)
    schema.command("show")(show)
    schema.command("list")(list_topics)
    schema.command("enable")(enable)
    schema.command("disable")(disable)
    app.add_typer(schema, name="schema")
    app.command("pause")(pause)
    app.command("resume")(resume)


def lint(
    ctx: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="FILE|DIR...", help="Schema files, or folders of them.")],
) -> None:
    """Check schema files and tell every problem. Exit 1 if there is one."""
    from lean_ops.govern.lint import lint as lint_files

    console = app_of(ctx).console
    findings = lint_files(paths)
    errors = [finding.error for finding in findings if finding.error]
    if console.as_json:
        problems = [{"file": error.where, **problem.to_dict()} for error in errors for problem in error.problems]
        console.document({"files": [str(finding.file) for finding in findings], "problems": problems})
    for error in errors:
        console.fault(str(error))
    console.say(f"{len(findings)} schema files, {len(errors)} with problems")
    raise typer.Exit(1 if errors else 0)


def submit(
    ctx: typer.Context,
    topic: TopicName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The schema file.")],
) -> None:
    """Hand in a topic's schema: it becomes active, or is refused with its reasons and changes nothing. Exit 1 then."""
    from lean_ops.govern.lint import read_schema_file
    from lean_ops.govern.submit import SchemaRefusedError

    call = app_of(ctx)
    name, content = parse_topic(topic), read_schema_file(file)
    submissions, now = call.services.submissions, call.services.clock()
    try:
        activation = submissions.submit(name, content, submitted_by=_user(), now=now)
    except SchemaRefusedError as error:
        _show_refusal(call.console, name, error)
        raise typer.Exit(1) from error
    show_activation(call.console, activation)


def _user() -> str:
    """Who is at the keyboard, as far as the machine knows."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _show_refusal(console: Console, topic: str, error: SchemaError) -> None:
    console.fault(f"error: {error}")
    if console.as_json:
        problems = [problem.to_dict() for problem in error.problems]
        console.document({"topic": topic, "activated": False, "message": str(error), "problems": problems})


def show_activation(console: Console, activation: Activation) -> None:
    """What a submission did."""
    version = activation.schema.schema_version
    if console.as_json:
        console.document(
            {
                "topic": activation.topic,
                "activated": activation.changed,
                "schema_version": version,
                "change_class": activation.change_class.value,
                "changes": [change.to_dict() for change in activation.changes],
                "archived": activation.archived,
            }
        )
    elif not activation.changed:
        console.say(f"schema {version} of {activation.topic} is active already; nothing changed")
    else:
        console.say(f"schema {version} of {activation.topic} is active ({activation.change_class.value})")
        for change in activation.changes:
            console.say(f"  {escape(str(change))}")


def show(ctx: typer.Context, topic: TopicName) -> None:
    """A topic's gate and its active schema."""
    from lean_ops.govern.flow import known_item

    call = app_of(ctx)
    services, name = call.services, parse_topic(topic)
    item = known_item(services.state, name)
    active = services.schemas.active(name)
    schema = services.gate.schema(name) if active is not None else None
    if call.console.as_json:
        import json

        call.console.document({**_item(item), "schema": json.loads(active) if active is not None else None})
        return
    _show_item(call.console, item)
    if schema is not None:
        _show_schema(call.console, schema)


def _show_item(console: Console, item: RegistryItem) -> None:
    flow = f"{item.flow.value}: {item.flow_reason}" if item.flow_reason else item.flow.value
    console.say(f"{item.topic_name}: {item.status.value}, flow {escape(flow)}")
    if item.last_error:
        console.say(f"  last refused schema: {escape(item.last_error)}\n  all reasons: {escape(str(item.error_path))}")


def _show_schema(console: Console, schema: Schema) -> None:
    by = schema.version_column or "publish_time"
    console.say(f"schema {schema.schema_version}, zones {' and '.join(schema.zones)}, newest by {by}")
    if schema.description:
        console.say(escape(schema.description))
    rows = [_column_row(name, column) for name, column in schema.payload_columns.items()]
    console.rows("payload columns", rows)


def _column_row(name: str, column: PayloadColumn) -> dict[str, Any]:
    return {
        "column": name,
        "type": f"{column.type} ({column.format})" if column.format else str(column.type),
        "from": column.json_path or "its own name",
        "rules": ", ".join(_rules(column)) or None,
        "description": column.description,
    }


def _rules(column: PayloadColumn) -> list[str]:
    rules = ["CDE"] if column.cde else ["required"] if column.required else []
    values = {
        "default": column.default,
        "one of": " | ".join(column.enum) if column.enum else None,
        "like": column.pattern,
        "min": column.min,
        "max": column.max,
        "pii": column.pii,
    }
    return rules + [f"{rule} {value}" for rule, value in values.items() if value is not None]


def list_topics(ctx: typer.Context) -> None:
    """Every known topic: its status, flow, schema version, number of columns and zones."""
    from lean_ops.govern.overview import overview

    call = app_of(ctx)
    rows = [asdict(line) for line in overview(call.services.state, call.services.schemas)]
    if not call.console.as_json:
        rows = [{**row, "flow": _flow(row), "zones": " ".join(row["zones"] or ()) or None} for row in rows]
    call.console.rows("topics", rows, ["topic", "status", "flow", "version", "columns", "zones"])


def _flow(row: dict[str, Any]) -> str:
    return f"{row['flow']}: {row['flow_reason']}" if row["flow_reason"] else row["flow"]


def enable(ctx: typer.Context, topic: TopicName) -> None:
    """Open the gate of a disabled topic again."""
    from lean_ops.govern.flow import enable as enable_topic

    services = app_of(ctx).services
    _tell(ctx, enable_topic(services.submissions, parse_topic(topic), services.clock()))


def disable(ctx: typer.Context, topic: TopicName) -> None:
    """Shut a topic's gate until it is enabled; its data goes on landing in RAW."""
    from lean_ops.govern.flow import disable as disable_topic

    services = app_of(ctx).services
    _tell(ctx, disable_topic(services.state, parse_topic(topic), services.clock()))


def pause(
    ctx: typer.Context,
    topic: TopicName,
    reason: Annotated[str, typer.Option(help="Why; shown wherever the topic is skipped.")] = "no reason given",
) -> None:
    """Stop processing a topic until it is resumed; its data goes on landing in RAW."""
    from lean_ops.govern.flow import pause as pause_topic

    services = app_of(ctx).services
    _tell(ctx, pause_topic(services.state, parse_topic(topic), reason, services.clock()))


def resume(ctx: typer.Context, topic: TopicName) -> None:
    """Let a paused topic go on; the next run processes what waited."""
    from lean_ops.govern.flow import resume as resume_topic

    services = app_of(ctx).services
    _tell(ctx, resume_topic(services.state, parse_topic(topic), services.clock()))


def _tell(ctx: typer.Context, item: RegistryItem) -> None:
    console = app_of(ctx).console
    if console.as_json:
        console.document(_item(item))
    else:
        _show_item(console, item)


def _item(item: RegistryItem) -> dict[str, Any]:
    return {**asdict(item), "processing_enabled": item.processing_enabled}
