"""What every command gets: a console, and the services once it asks for them."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from lean_ops.entrypoints.console import Console
from lean_ops.model.errors import LeanOpsError, TerminalError, WrongUseError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import typer

    from lean_ops.wiring import Services


@dataclass
class App:
    """One call of the command line; `flags` are settings that were given on it."""

    console: Console
    make_services: Callable[[Mapping[str, Any]], Services]
    flags: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def services(self) -> Services:
        """The wired product; settings are read when it is first asked for."""
        # Otherwise Python would print that a commit is tried again, which is no news for a person.
        logging.getLogger("pyiceberg").addHandler(logging.NullHandler())
        return self.make_services(self.flags)

    def services_with_lake(self) -> Services:
        """The services, if there is a lake already: looking at one, or running on one, never makes it."""
        services = self.services
        if not services.on_aws and not services.settings.catalog_file.is_file():
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
