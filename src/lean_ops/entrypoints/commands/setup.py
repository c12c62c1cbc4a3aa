"""`init` and `config`: make a home, show its settings."""

from __future__ import annotations

import typer

from lean_ops.entrypoints.context import app_of
from lean_ops.settings import Settings


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("init")(init)
    app.command("config")(config)


def init(ctx: typer.Context) -> None:
    """Make the home: its catalog, state and every table that topics share. On AWS the tables. Safe to repeat."""
    call = app_of(ctx)
    services, settings = call.services, call.services.settings
    services.lake.ensure_shared()
    services.state.items()
    for folder in () if services.on_aws else (settings.schemas_dir, settings.archive_dir):
        folder.mkdir(parents=True, exist_ok=True)
    tables = [str(name) for name in services.lake.names.shared]
    kind, place = ("warehouse", settings.warehouse) if services.on_aws else ("home", str(settings.home))
    if call.console.as_json:
        call.console.document({kind: place, "tables": tables})
    else:
        call.console.say(f"{kind} {place} is ready: {len(tables)} shared tables")


def config(ctx: typer.Context) -> None:
    """Every setting, its value and where that came from."""
    call = app_of(ctx)
    loaded = call.services.loaded
    rows = [
        {
            "setting": key,
            "value": getattr(loaded.settings, key),
            "from": loaded.origins[key],
            "description": Settings.model_fields[key].description,
        }
        for key in Settings.model_fields
    ]
    call.console.rows("settings", rows)
