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
    """Make the home: its catalog, state and every table that topics share. Safe to repeat."""
    call = app_of(ctx)
    services = call.services
    services.lake.ensure_shared()
    services.state.items()
    for folder in (services.settings.schemas_dir, services.settings.archive_dir):
        folder.mkdir(parents=True, exist_ok=True)
    tables = [str(name) for name in services.lake.names.shared]
    if call.console.as_json:
        call.console.document({"home": str(services.settings.home), "tables": tables})
    else:
        call.console.say(f"home {services.settings.home} is ready: {len(tables)} shared tables")


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
