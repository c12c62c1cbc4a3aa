"""`replay`: what was refused goes through again, with its own ids."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lean_ops.entrypoints.context import App, app_of
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lean_ops.operate.replay_dlq import Refusal, Replayed

_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    replay = typer.Typer(help="Bring what was refused through again.", no_args_is_help=True)
    replay.command("dlq")(replay_dlq)
    app.add_typer(replay, name="replay")


def replay_dlq(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(help="The topic whose dead letters are meant.")],
    where: Annotated[
        str | None, typer.Option(help="SQL condition over columns of dlq_errors: only letters that meet it.")
    ] = None,
) -> None:
    """Dead letters that are not fixed yet, through ingestion again; doing it twice changes nothing."""
    from lean_ops.state.port import Held

    call = app_of(ctx)
    name = parse_topic(topic)
    services = call.services_with_lake()
    try:
        with services.lease_keeper().running() as keeper, keeper.lease(f"replay:{name}") as lease:
            if isinstance(lease, Held):
                _show_held(call, name, lease)
                return
            replayed = services.dlq_replay().replay(name, where)
    finally:
        services.presence.leave()
    _show(call, replayed)
    if replayed.unreadable:
        raise typer.Exit(1)


def _show_held(call: App, topic: str, held: Any) -> None:
    if call.console.as_json:
        call.console.document({"topic": topic, "held_by": held.by.owner})
    else:
        call.console.say(escape(f"{topic}: another replay is at work, by {held.by.owner}; nothing was done"))


def _show(call: App, replayed: Replayed) -> None:
    if call.console.as_json:
        call.console.document({**asdict(replayed), "letters": replayed.letters})
        return
    _list(call, "refused again", replayed.refused)
    _list(call, "can't be read", replayed.unreadable)
    call.console.say(escape(_totals(replayed)))


def _list(call: App, what: str, refusals: Sequence[Refusal]) -> None:
    for refusal in refusals[:_SHOWN]:
        reason = f"{refusal.error_type}: {refusal.reason}" if refusal.error_type else refusal.reason
        call.console.say(escape(f"{refusal.archive_path}: {what}: {reason}"))
    if len(refusals) > _SHOWN:
        call.console.say(f"and {len(refusals) - _SHOWN} more; --json lists all")


def _totals(replayed: Replayed) -> str:
    if not replayed.letters:
        return f"{replayed.topic}: no dead letters to replay"
    parts = {
        "landed in RAW": replayed.landed,
        "were in RAW already": replayed.already,
        "refused again": len(replayed.refused),
        "can't be read": len(replayed.unreadable),
    }
    told = ", ".join(f"{count} {what}" for what, count in parts.items() if count)
    return f"{replayed.topic}: {replayed.letters} dead letters: {told} (replay {replayed.replay_id})"
