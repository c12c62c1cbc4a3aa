"""`discover`: which Pub/Sub topics there are, into the registry and Terraform's variables."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from lean_ops.entrypoints.context import App, app_of
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from lean_ops.bridge.discovery import Findings, Topics


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("discover")(discover)


def discover(
    ctx: typer.Context,
    gcp_project: Annotated[str, typer.Option(help="Google Cloud project whose Pub/Sub topics are looked at.")],
    prefix: Annotated[str, typer.Option(help="Only topics whose names begin so.")] = "",
    label: Annotated[str, typer.Option(help="Only topics with this label, KEY=VALUE.")] = "",
    environment: Annotated[
        str | None, typer.Option(help="Environment whose queues the topics get; else that of the settings, else dev.")
    ] = None,
    variables: Annotated[Path, typer.Option(help="Terraform variables file to keep in step.")] = Path(
        "topics.auto.tfvars.json"
    ),
) -> None:
    """Look at Pub/Sub's topics; changes go to the registry, and all topics to Terraform's variables."""
    from lean_ops.aws.environment import ENVIRONMENT, PROJECT, Deployment
    from lean_ops.bridge.discovery import Choice, Discovery
    from lean_ops.bridge.variables import LocalFile, Variables

    call = app_of(ctx)
    services = call.services
    settings = services.settings
    deployment = Deployment.of({PROJECT: settings.project, ENVIRONMENT: environment or settings.environment or "dev"})
    discovery = Discovery(_pubsub_topics(), services.lake, services.shared, deployment, services.clock)
    choice = Choice.of(gcp_project, prefix, label)
    findings = discovery.look(choice, Variables(LocalFile(variables)), lambda _: None)
    _show(call, findings, variables)
    if findings.refused:
        raise typer.Exit(1)


def _pubsub_topics() -> Topics:
    """Pub/Sub, if the packages for it are there."""
    try:
        from lean_ops.bridge.pubsub_topics import PubSubTopics
    except ImportError as error:
        remedy = "Install the bridge's packages: pip install 'lean-ops[bridge]'."
        raise TerminalError("Google's packages are missing", found=str(error), remedy=remedy) from error
    return PubSubTopics(os.environ.get("PUBSUB_EMULATOR_HOST") or None)


def _show(call: App, findings: Findings, variables: Path) -> None:
    if call.console.as_json:
        call.console.document({**asdict(findings), "variables": str(variables)})
        return
    for kind in ("new", "back", "replaced", "gone"):
        for topic in getattr(findings, kind):
            call.console.say(f"{kind}: {topic}")
    for path, reason in findings.refused.items():
        call.console.say(escape(f"refused: {path}: {reason}"))
    added = (
        f"has {len(findings.added)} more; apply Terraform to make their queues" if findings.added else "has them all"
    )
    call.console.say(escape(f"{len(findings.active)} topics, {len(findings.new)} new; {variables} {added}"))
