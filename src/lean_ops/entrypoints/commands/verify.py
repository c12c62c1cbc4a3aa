"""`verify`: the lake against an oracle, message by message."""

from __future__ import annotations

import shlex
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape

from lean_ops.entrypoints.commands.reading import existing_state
from lean_ops.entrypoints.context import App, app_of
from lean_ops.model.errors import WrongUseError
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lean_ops.ledger.oracle import Oracle
    from lean_ops.ledger.verify_result import Difference, Told, Verification, WrongValue

_SHOWN: Final = 300
_TOLD_EVERY: Final = 50


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("verify")(verify)


def verify(
    ctx: typer.Context,
    fates: Annotated[list[Path], typer.Option("--fates", help="What must have become of each body. Repeatable.")],
    topics: Annotated[list[str] | None, typer.Argument(help="Topics to look at; all of the files if none.")] = None,
    show: Annotated[int, typer.Option(min=0, help="Tell so many differences in full.")] = 10,
    redelivered: Annotated[
        bool, typer.Option("--redelivered", help="Files may have been ingested more than once.")
    ] = False,
    complete: Annotated[bool, typer.Option("--complete", help="A message that no file knows is a difference.")] = False,
) -> None:
    """Whether each message became what `generate` says it must: the lake against a fates file."""
    from lean_ops.ledger.oracle import read_oracle
    from lean_ops.ledger.verify import Verifier

    call = app_of(ctx)
    wanted = [parse_topic(topic) for topic in topics or ()]
    oracle = read_oracle(fates, wanted)
    _refuse_nothing_told(oracle, fates, wanted)
    services = call.services_with_lake()
    reconciler = services.reconciler(existing_state(services))
    result = Verifier(reconciler, oracle, show, redelivered, complete).verify(_progress(call, len(oracle.topics)))
    _show(call, result, redelivered)
    if not result.matches:
        raise typer.Exit(1)


def _refuse_nothing_told(oracle: Oracle, fates: Sequence[Path], wanted: Sequence[str]) -> None:
    """An oracle that says nothing must not look like a lake that is right."""
    untold = [topic for topic in wanted if topic not in oracle.topics]
    if untold or not oracle.topics:
        raise WrongUseError(
            f"no line tells of topic {untold[0]!r}" if untold else "no line at all",
            where=", ".join(map(str, fates)),
            expected="a fates file, as `lean-ops generate` writes it beside its bodies",
        )


def _progress(call: App, topics: int) -> Callable[[str], None]:
    """Tells now and then how far it is."""
    begun = count(1)

    def tell(topic: str) -> None:
        number = next(begun)
        if number % _TOLD_EVERY == 0:
            call.console.say(f"{number}/{topics} {escape(topic)}")

    return tell


# how it looks


def _show(call: App, result: Verification, redelivered: bool) -> None:
    console = call.console
    for topic, problem in result.problems.items():
        console.fault(f"error: topic {topic} can't be compared: {problem}")
    if console.as_json:
        console.document(result.document())
        return
    console.rows("bodies", result.fate_lines(), ("fate", "expected", "found"))
    for number, difference in enumerate(result.shown, start=1):
        for line in difference_lines(number, difference):
            console.say(escape(line))
    for note in notes(result, redelivered):
        console.say(escape(note))
    console.say(verdict(result))


def difference_lines(number: int, difference: Difference) -> Iterator[str]:
    """A difference in full: which body it is, what was expected and found, and where to look further."""
    from lean_ops.ledger.verify_result import DIFFERS_WORDS

    yield f"difference {number}: {', '.join(_body_words(difference))}"
    yield f"  {'; '.join(DIFFERS_WORDS[kind] for kind in difference.differs)}"
    yield f"  expected  {_told_words(difference.expected)}"
    yield f"  found     {_told_words(difference.found)}"
    rows = [f"{table} {rows}" for table, rows in difference.rows.items() if rows]
    if rows:
        yield f"  rows      {', '.join(rows)}"
    for value in difference.values:
        yield f"  column    {_value_words(value)}"
    if difference.message_id is not None:
        yield f"  look      lean-ops trace {shlex.quote(_plain(difference.message_id))}"


def _body_words(difference: Difference) -> Iterator[str]:
    yield f"topic {_plain(difference.topic)}"
    if difference.message_id is not None:
        yield f"message {_plain(difference.message_id)}"
    if difference.publish_time is not None:
        yield f"published {difference.publish_time.isoformat().replace('+00:00', 'Z')}"
    if difference.body_sha256 is not None:
        yield f"body with sha256 {difference.body_sha256}"
    if difference.file is not None or difference.line is not None:
        yield f"{_plain(difference.file or '')}:{difference.line}"
    if difference.kind is not None:
        yield f"kind {_plain(difference.kind)}"


def _told_words(told: Told) -> str:
    words = [", ".join(f"{bodies} {fate}" for fate, bodies in told.fates.items()) or "nothing"]
    words += [f"reason {_plain(told.reason)}"] if told.reason is not None else []
    words += [f"fields {_plain(', '.join(sorted(told.fields)))}"] if told.fields is not None else []
    words += [f"version {_plain(told.version)}"] if told.version is not None else []
    words += [f"key {', '.join(_value(key) for key in told.keys)}"] if told.keys else []
    return "; ".join(words)


def _value_words(value: WrongValue) -> str:
    found = _value(value.found) if value.is_there else "no such column"
    return f"{_plain(value.column)}: expected {_value(value.expected)}, found {found}"


def _value(text: str | None) -> str:
    return "NULL" if text is None else f"'{_plain(text)}'"


def _plain(text: str) -> str:
    """Foreign text as it may stand on a screen: not endless, and without anything that a terminal would obey."""
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return short if short.isprintable() else ascii(short)[1:-1]


def notes(result: Verification, redelivered: bool) -> Iterator[str]:
    """What must be known to read the numbers."""
    if result.shown and result.differences > len(result.shown):
        yield f"note: {result.differences - len(result.shown)} more differences; --show N tells more of them"
    if redelivered and result.redelivered:
        yield f"note: {_number(result.redelivered, 'copy', 'copies')} more than the oracle tells of: redelivered"
    if result.unknown and not result.complete:
        yield f"note: {_number(result.unknown, 'message')} of these topics that no line knows"


def verdict(result: Verification) -> str:
    """All of it in one sentence."""
    words = f"{_number(result.messages, 'message')} as the oracle says"
    if result.differing:
        words = f"{result.differing} of {_number(result.messages, 'message')} differ"
    if result.unknown and result.complete:
        words += f", and no line knows of {_number(result.unknown, 'more message')}"
    if result.problems:
        words += f"; {_number(len(result.problems), 'topic')} can't be compared"
    return words


def _number(number: int, noun: str, nouns: str | None = None) -> str:
    return f"{number} {noun if number == 1 else nouns or f'{noun}s'}"
