"""`rebuild`: a topic's tables again from RAW, beside the live ones; the difference is shown before it is published."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lean_ops.entrypoints.context import App, app_of
from lean_ops.entrypoints.stopping import stoppable
from lean_ops.model.errors import WrongUseError
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from lean_ops.operate.rebuild import RebuildOutcome
    from lean_ops.operate.rebuild_difference import Difference

_KINDS = ("before", "after", "gone", "new", "changed")


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("rebuild")(rebuild)


def rebuild(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(help="The topic whose tables are built again.")],
    yes: Annotated[bool, typer.Option("--yes", help="Publish without asking.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the difference and publish nothing.")] = False,
    master: Annotated[str | None, typer.Option(help="Spark master address, instead of the setting.")] = None,
) -> None:
    """Build a topic's Standardized and Curated again from RAW while live processing goes on."""
    call, name = app_of(ctx), parse_topic(topic)
    if yes and explain:
        raise WrongUseError("--yes publishes and --explain does not: give one of them")
    asks = not (yes or explain)
    if asks and (call.console.as_json or not (sys.stdin.isatty() and call.console.is_terminal)):
        raise WrongUseError(
            "nobody is here to be asked",
            where="rebuild",
            expected="--yes to publish, or --explain to see the difference",
        )
    call.flags["spark_master"] = master
    services = call.services_with_lake()
    services.planner.plan([name])  # a topic that does not exist is told here
    with stoppable(), closing(call):
        _log(call)
        call.console.say(escape(f"{name}: building again from RAW; live processing goes on"))
        outcome = services.rebuilder().rebuild(name, lambda shown: _agreed(call, shown, yes, explain), asks)
    _show(call, outcome)
    if outcome.status == "FAILED":
        raise typer.Exit(1)


def _log(call: App) -> None:
    from lean_ops.entrypoints.logs import log_into

    log_into(call.services.settings.logs_dir)


def _agreed(call: App, difference: Difference, yes: bool, explain: bool) -> bool:
    """Show the difference, and ask if there is somebody to be asked."""
    if not call.console.as_json:
        call.console.rows("the rebuilt tables beside the live ones", difference_rows(difference))
        if difference.is_none:
            call.console.say("nothing changes for readers")
    if yes or explain:
        return yes
    return typer.confirm("Publish?")


def difference_rows(difference: Difference) -> list[dict[str, Any]]:
    """The difference as rows: one for each zone's table and one for what it refused."""
    rows = []
    for zone in difference.zones:
        for what, found in (("rows", zone.rows), ("errors", zone.errors)):
            examples = "; ".join(f"{kind}: {', '.join(ids)}" for kind, ids in found.ids.items())
            counts = {kind: getattr(found, kind) for kind in _KINDS}
            rows.append({"zone": f"{zone.zone} {what}", **counts, "examples": examples or None})
        if zone.new_columns:
            shown = ", ".join(zone.new_columns[:5])
            nothing = dict.fromkeys(_KINDS)
            rows.append({"zone": f"{zone.zone} columns", **nothing, "new": len(zone.new_columns), "examples": shown})
    return rows


def _show(call: App, outcome: RebuildOutcome) -> None:
    if call.console.as_json:
        call.console.document(outcome.document())
    elif outcome.status == "FAILED":
        call.console.fault(f"{outcome.topic}: {outcome.reason}")
    else:
        words = outcome.reason or f"published (rebuild {outcome.rebuild_id})"
        call.console.say(escape(f"{outcome.topic}: {words}"))
