"""`generate`: queue bodies with injected faults, and beside them what must become of each."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape

from lean_ops.entrypoints.context import App, app_of
from lean_ops.model.errors import WrongUseError
from lean_ops.operate.generate.kinds import INJECTIONS

if TYPE_CHECKING:
    from lean_ops.operate.generate.order import Made

_FOLDER: Final = Path("generated")


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("generate")(generate)


def _rate(name: str) -> Any:
    return typer.Option(help=f"Share of bodies: {INJECTIONS[name].becomes}.", metavar="R", show_default=False)


def generate(  # noqa: PLR0913, PLR0917  a flag for each injection
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(help="Topic; with --topics the beginning of their names.")],
    messages: Annotated[int, typer.Option("-n", "--messages", help="Bodies for each topic.")] = 1000,
    topics: Annotated[int, typer.Option(help="Number of topics, named TOPIC_1, TOPIC_2, …")] = 1,
    family: Annotated[
        str | None, typer.Option(help="events, orders, payments or readings; by the topic's name if not given.")
    ] = None,
    duplicates: Annotated[float, _rate("duplicates")] = 0,
    corrections: Annotated[float, _rate("corrections")] = 0,
    same_key: Annotated[float, _rate("same_key")] = 0,
    cross_month: Annotated[float, _rate("cross_month")] = 0,
    late: Annotated[float, _rate("late")] = 0,
    repairs: Annotated[float, _rate("repairs")] = 0,
    skewed: Annotated[float, _rate("skewed")] = 0,
    drift: Annotated[float, _rate("drift")] = 0,
    removed: Annotated[float, _rate("removed")] = 0,
    reordered: Annotated[float, _rate("reordered")] = 0,
    type_changes: Annotated[float, _rate("type_changes")] = 0,
    malformed: Annotated[float, _rate("malformed")] = 0,
    empty: Annotated[float, _rate("empty")] = 0,
    not_objects: Annotated[float, _rate("not_objects")] = 0,
    cde_nulls: Annotated[float, _rate("cde_nulls")] = 0,
    bad_types: Annotated[float, _rate("bad_types")] = 0,
    bad_timestamps: Annotated[float, _rate("bad_timestamps")] = 0,
    broken_rules: Annotated[float, _rate("broken_rules")] = 0,
    combined: Annotated[float, _rate("combined")] = 0,
    refused: Annotated[float, _rate("refused")] = 0,
    poison: Annotated[float, _rate("poison")] = 0,
    oversized: Annotated[float, _rate("oversized")] = 0,
    seed: Annotated[int, typer.Option(help="The same seed makes the same bytes.")] = 1,
    files: Annotated[int, typer.Option(help="Files for each topic, to be ingested in their order.")] = 1,
    folder: Annotated[Path, typer.Option("-o", "--output", help="Folder for the files.")] = _FOLDER,
    yes: Annotated[bool, typer.Option("--yes", help="Write into a folder that has files already.")] = False,
) -> None:
    """Make queue bodies, with faults at the given rates, and fates.jsonl with what must become of each of them."""
    from lean_ops.operate.generate.order import Order, make

    given = locals()
    call = app_of(ctx)
    rates = {name: given[name] for name in INJECTIONS if given[name]}
    order = Order(topic, messages, rates, seed, topics, family, files)
    _refuse_files(folder, yes)
    began = time.monotonic()
    made = make(order, folder)
    _show(call, made, time.monotonic() - began)


def _refuse_files(folder: Path, yes: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise WrongUseError("not a folder", where=f"-o {folder}")
    if not yes and folder.is_dir() and any(folder.iterdir()):
        raise WrongUseError(
            "the folder has files already", where=f"-o {folder}", remedy="Name another one, or add --yes."
        )


def _show(call: App, made: Made, seconds: float) -> None:
    if call.console.as_json:
        call.console.document(_document(made, seconds, next_commands(made, call.flags["home"])))
        return
    rows = [{"fate": fate, "bodies": count} for fate, count in made.fates.items()]
    call.console.rows("what must become of them", rows)
    rate = f"{made.messages / seconds:,.0f}" if seconds else "all"
    places = f"{len(made.topics)} topics" if len(made.topics) > 1 else made.topics[0]
    call.console.say(
        escape(f"{made.messages:,} bodies for {places} in {made.folder}, in {seconds:.1f} s, {rate} a second")
    )
    call.console.say("next:")
    for command in next_commands(made, call.flags["home"]):
        call.console.say(escape(f"  {command}"))


def next_commands(made: Made, home: Path | None) -> list[str]:
    """What to type to see the bodies through the pipeline and compare; of many topics, the first one's."""
    topic, folder = made.topics[0], made.folder
    bodies = [str(folder / file) for file in made.files[topic]]
    commands = [
        ["schema", "submit", topic, str(folder / "schemas" / f"{topic}.json")],
        ["ingest", topic, *bodies],
        ["run", topic],
        ["verify", "--fates", str(folder / "fates.jsonl"), *([topic] if len(made.topics) > 1 else [])],
    ]
    program = ["lean-ops", *(["--home", str(home)] if home else [])]
    return [shlex.join([*program, *command]) for command in commands]


def _document(made: Made, seconds: float, commands: list[str]) -> dict[str, Any]:
    return {
        "folder": str(made.folder),
        "topics": {topic: list(files) for topic, files in made.files.items()},
        "messages": made.messages,
        "fates": dict(made.fates),
        "fates_file": str(made.folder / "fates.jsonl"),
        "seconds": round(seconds, 3),
        "next": commands,
    }
