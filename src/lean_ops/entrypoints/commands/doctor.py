"""`doctor`: whether everything is here that a run needs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from lean_ops.entrypoints.console import Console
from lean_ops.entrypoints.context import app_of

if TYPE_CHECKING:
    from lean_ops.operate.doctor import Check


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("doctor")(doctor)


def doctor(ctx: typer.Context) -> None:
    """Check Python, Java, jars, disk, home, catalog, state, clock and credentials; on AWS the parts there.

    Changes nothing.
    """
    from lean_ops.operate.doctor import examine

    call = app_of(ctx)
    services = call.services
    if services.on_aws:
        checks = services.cloud_parts().examine()
    else:
        checks = examine(services.settings, os.environ, services.clock())
    if call.console.as_json:
        call.console.document([asdict(check) for check in checks])
    else:
        _show(call.console, checks)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def _show(console: Console, checks: Sequence[Check]) -> None:
    rows = [{"check": check.name, "ok": "yes" if check.ok else "NO", "detail": check.detail} for check in checks]
    console.rows("doctor", rows)
    for check in checks:
        if check.remedy:
            console.say(f"{escape(check.name)}: {escape(check.remedy)}")
