"""`lean-ops`: flags in, a command's function called, an exit code out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lean_ops.entrypoints.commands import (
    bench,
    demo,
    discover,
    doctor,
    emulate,
    generate,
    ingest,
    prepare,
    reading,
    rebuild,
    reconcile,
    replay,
    run,
    schema,
    setup,
    verify,
)
from lean_ops.entrypoints.console import Console
from lean_ops.entrypoints.context import App, fail_with
from lean_ops.model.errors import LeanOpsError, of_the_system
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(
    name="lean-ops",
    help="Events of many topics into Apache Iceberg: gated by schemas, deduplicated twice, every record accounted for.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for module in (
    demo,
    generate,
    emulate,
    setup,
    prepare,
    ingest,
    doctor,
    schema,
    run,
    reading,
    reconcile,
    replay,
    rebuild,
    verify,
    discover,
    bench,
):
    module.register(app)

_GLOBAL_VALUES = ("--home", "--profile")


@app.callback()
def _global_options(
    ctx: typer.Context,
    home: Annotated[Path | None, typer.Option(help="Folder of the lake, its state and schemas.")] = None,
    profile: Annotated[str | None, typer.Option(help="Where it runs: embedded or aws.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout, the rest on stderr.")] = False,
) -> None:
    console = Console(as_json)
    flags = {"home": home, "profile": profile}
    call = App(console, lambda given: Services(load_settings(given), notice=console.say), flags)
    ctx.obj = call
    ctx.call_on_close(call.close)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave the process with its exit code: 0 done, 1 work failed, 2 wrong use."""
    given = hoist_global_options(list(sys.argv[1:] if arguments is None else arguments))
    as_json = "--json" in (given[: given.index("--")] if "--" in given else given)
    try:
        app(args=given)
    except SystemExit as left:
        if left.code == 2 and as_json:  # typer has said on stderr what it did not understand
            Console(as_json).document({"error": {"message": "the arguments can't be understood; stderr says why"}})
        raise
    except LeanOpsError as error:
        fail_with(error, as_json)
    except OSError as error:
        fail_with(of_the_system(error), as_json)


def hoist_global_options(arguments: list[str]) -> list[str]:
    """The same arguments with the global options in front, so that they may stand anywhere."""
    front: list[str] = []
    rest: list[str] = []
    remaining: list[str] = list(arguments)
    while remaining:
        word = remaining.pop(0)
        if word == "--":
            rest += [word, *remaining]
            break
        if word in _GLOBAL_VALUES:
            front += [word, *remaining[:1]]
            remaining = remaining[1:]
        elif word == "--json" or word.startswith(tuple(f"{option}=" for option in _GLOBAL_VALUES)):
            front.append(word)
        else:
            rest.append(word)
    return front + rest
