"""`reconcile`: the books against the tables; `--recount` counts the tables' rows and keeps the result in the ledger."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape

from lean_ops.entrypoints.commands.reading import existing_state, known_topic
from lean_ops.entrypoints.context import App, app_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lean_ops.ledger.account import Finding, TopicAccount, ZoneAccount
    from lean_ops.ledger.reconcile import Reconciler
    from lean_ops.ledger.recount import Recount
    from lean_ops.wiring import Services

_NAMED: Final = 10
_ALWAYS: Final = frozenset({"topic", "zone", "in", "inserted", "errors", "rows", "accounted", "balanced"})


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("reconcile")(reconcile)


def reconcile(
    ctx: typer.Context,
    topics: Annotated[list[str] | None, typer.Argument(help="Topics to look at; all when none is given.")] = None,
    recount: Annotated[
        bool, typer.Option("--recount", help="Count the rows themselves and write the result to the ledger.")
    ] = False,
) -> None:
    """Whether every record has exactly one fate: the ledger against the tables, zone by zone."""
    call = app_of(ctx)
    services = call.services_with_lake()
    wanted = _wanted(services, topics or ())
    reconciler = services.reconciler(existing_state(services))
    accounts = _recounted(call, reconciler, wanted) if recount else reconciler.reconcile(wanted)
    _show(call, accounts, recount)
    if not all(account.balanced for account in accounts):
        raise typer.Exit(1)


def _wanted(services: Services, topics: Sequence[str]) -> list[str]:
    """The named topics, each once, or all there are."""
    from lean_ops.ledger.status import topics_of

    named = [name for topic in topics if (name := known_topic(services, topic)) is not None]
    return list(dict.fromkeys(named)) or topics_of(
        services.lake.file, services.settings.names, existing_state(services)
    )


def _recounted(call: App, reconciler: Reconciler, topics: Sequence[str]) -> list[TopicAccount]:
    """Every topic counted anew, a line for each as it is done; then all of it is written."""
    from lean_ops.ledger.recount import Recounter

    recounter, done = Recounter(reconciler), []
    for number, topic in enumerate(topics, start=1):
        done.append(recounter.recount(topic))
        result = "balances" if done[-1].account.balanced else "does not balance"
        call.console.say(f"{number}/{len(topics)} {topic}: recounted, {result}")
    _write(call.services, done)
    return [recount.account for recount in done]


def _write(services: Services, recounts: Sequence[Recount]) -> None:
    """The recounts' rows in one commit, and an alert for each zone that does not balance."""
    from lean_ops.entrypoints.logs import log_into
    from lean_ops.ledger.recount import recount_rows, variance_alert

    log_into(services.settings.logs_dir)
    now, names = services.clock(), services.settings.names
    if not all(services.lake.exists(names.ops(table)) for table in ("reconciliation_log", "alerts")):
        services.lake.ensure_shared()
    rows = [row for recount in recounts for row in recount_rows(recount, lambda: uuid.uuid4().hex, now)]
    services.shared.append_rows(names.ops("reconciliation_log"), rows)
    ids = {(row["topic_name"], row["zone"]): row["batch_id"] for row in rows}
    for account in (zone for recount in recounts for zone in recount.account.zones):
        alert = variance_alert(account, ids.get((account.topic, str(account.zone)), uuid.uuid4().hex))
        if alert is not None:
            services.books.raise_alert(alert, now)


# how it looks


def _show(call: App, accounts: Sequence[TopicAccount], recount: bool) -> None:
    console, zones = call.console, [zone for account in accounts for zone in account.zones]
    if console.as_json:
        balanced = all(account.balanced for account in accounts)
        topics = [account.document() for account in accounts]
        console.document({"topics": topics, "balanced": balanced, "recount": recount})
        return
    lines = [account_line(zone) for zone in zones]
    console.rows("reconciled", lines, telling_columns(lines))
    for zone in zones:
        for finding in zone.findings:
            console.say(finding_line(zone, finding))
    console.say(escape(verdict(accounts)))


def account_line(zone: ZoneAccount) -> dict[str, Any]:
    """A zone in numbers that fit beside each other on a screen."""
    counts = zone.counts
    return {
        "topic": zone.topic,
        "zone": str(zone.zone),
        "in": counts.records_in,
        "inserted": counts.inserted,
        "updated": counts.updated,
        "duplicates": counts.duplicates,
        "superseded": counts.superseded,
        "errors": counts.errors,
        "rows": zone.rows,
        "waiting": zone.waiting,
        "difference": zone.difference,
        "variance": f"{zone.variance:.2%}",
        "accounted": f"{zone.accountability:.2%}",
        "balanced": "yes" if zone.balanced else "NO",
    }


def telling_columns(lines: Sequence[dict[str, Any]]) -> list[str]:
    """The columns that every table has, and those that say something in at least one line."""
    names = lines[0] if lines else ()
    return [name for name in names if name in _ALWAYS or any(line[name] not in {None, 0, "0.00%"} for line in lines)]


def finding_line(zone: ZoneAccount, finding: Finding) -> str:
    """A finding with its place, a note as such."""
    place = f"{zone.topic}, {zone.zone}"
    words = escape(finding.message)
    return f"note: {place}: {words}" if finding.is_note else f"[bold]{place}: {finding.kind}[/bold]: {words}"


def verdict(accounts: Sequence[TopicAccount]) -> str:
    """All of it in one sentence."""
    zones = [zone for account in accounts for zone in account.zones]
    looked = f"{_number(len(accounts), 'topic')}, {_number(len(zones), 'zone')}"
    wrong = [f"{zone.topic} {zone.zone}" for zone in zones if not zone.balanced]
    if not wrong:
        return f"{looked}: everything balances"
    more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
    return f"{looked}: {len(wrong)} not balanced: {', '.join(wrong[:_NAMED])}{more}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
