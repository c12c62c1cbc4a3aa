"""What every command gets: a console, and the services once it asks for them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from lean_ops.entrypoints.console import Console
from lean_ops.model.errors import LeanOpsError, TerminalError, WrongUseError

if TYPE_CHECKING:
    from collections.abc import Callable

    import typer

    from lean_ops.wiring import Services


@dataclass
class App:
    """One call of the command line."""

    console: Console
    _make_services: Callable[[], Services]

    @classmethod
    def create(cls, as_json: bool, make_services: Callable[[], Services]) -> App:
        """Nothing is read or opened yet."""
        return cls(Console(as_json), make_services)

    @cached_property
    def services(self) -> Services:
        """The wired product; settings are read when it is first asked for."""
        return self._make_services()

    def services_with_lake(self) -> Services:
        """The services, if there is a lake already: looking at one, or running on one, never makes it."""
        services = self.services
        if not services.settings.catalog_file.is_file():
            raise TerminalError(
                "no lake here", where=str(services.settings.home), remedy="Run `lean-ops init` or `lean-ops demo`."
            )
        return services

    def close(self) -> None:
        """End what the call has started."""
        if "services" in vars(self):
            self.services.close()


def app_of(ctx: typer.Context) -> App:
    """The call's App."""
    app = ctx.obj
    assert isinstance(app, App)  # noqa: S101  set by the callback of every command
    return app


def fail_with(error: LeanOpsError, as_json: bool) -> NoReturn:
    """Tell a person (or a machine) what went wrong and leave."""
    console = Console(as_json)
    console.fault(f"error: {error}")
    if as_json:
        fields = ("what", "where", "found", "expected", "remedy")
        console.document({"error": {"message": str(error), **{name: getattr(error, name) for name in fields}}})
    sys.exit(2 if isinstance(error, WrongUseError) else 1)
