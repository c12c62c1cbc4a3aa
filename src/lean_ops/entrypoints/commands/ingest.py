"""`ingest`: queue bodies of files or stdin into RAW."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lean_ops.entrypoints.context import App, app_of
from lean_ops.ingest.lines import check_sources, spoken_name
from lean_ops.model.errors import LeanOpsError
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lean_ops.ingest.flush import Place
    from lean_ops.ingest.intake import LandedFlush, Report

_SHOWN_REFUSALS = 20


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("ingest")(ingest)


def ingest(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(help="Topic, or the Pub/Sub or queue name that stands for it.")],
    files: Annotated[list[str], typer.Argument(metavar="FILE…|-", help="Queue bodies, one JSON a line; - is stdin.")],
    from_firehose_errors: Annotated[
        bool,
        typer.Option("--from-firehose-errors", help="The files, or all in a folder, are error output of Firehose."),
    ] = False,
) -> None:
    """Bring queue bodies into RAW; what can't be taken goes to the dead letters with its reason."""
    from lean_ops.ingest.firehose_errors import FirehoseErrors, error_files
    from lean_ops.ingest.intake import StoppedError
    from lean_ops.ingest.stop import StopSignal

    call = app_of(ctx)
    name = parse_topic(topic)
    errors = FirehoseErrors(name) if from_firehose_errors else None
    files = error_files(files) if errors else files
    check_sources(files)
    services = call.services
    with StopSignal() as stop:  # one request may come twice, and what landed is told nevertheless
        with _progress(call, files) as (say, on_read):
            intake = services.intake(name, topic, lambda landed: say(_flush_line(landed)), on_read)
            intake = replace(intake, stop=stop, read_lines=errors.read_lines if errors else intake.read_lines)
            try:
                report, error = intake.take(name, files), None
            except StoppedError as stopped:
                report, error = stopped.report, stopped
            finally:
                services.presence.leave()
        _show(call, report, error, dict(sorted(errors.others.items())) if errors else {})
    if error:
        raise typer.Exit(1)


@contextmanager
def _progress(call: App, files: list[str]) -> Iterator[tuple[Callable[[str], None], Callable[[int], None]]]:
    """How to say a line, and what to do with the bytes read: a bar that moves while a person watches."""
    if not (call.console.is_terminal and sys.stderr.isatty()):
        yield call.console.say, lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    paths = [Path(file) for file in files]
    size = sum(path.stat().st_size for path in paths) if all(path.is_file() for path in paths) else None
    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task("reading", total=size)

    def say(text: str) -> None:
        bar.stop()  # or the bar would be drawn over the text
        call.console.say(text)
        bar.start()

    with bar:
        yield say, lambda count: bar.advance(task, count)


def _show(call: App, report: Report, error: LeanOpsError | None, others: dict[str, int]) -> None:
    if error:
        call.console.fault(f"error: {error}")
    if call.console.as_json:
        more = {**({"other_topics": others} if others else {}), **({"error": _error(error)} if error else {})}
        call.console.document({**_document(report), **more})
    else:
        _show_refused(call, report)
        if others:
            call.console.say(escape(_others_line(others)))
        if report.lines or not error:  # input that nothing landed of is not empty
            call.console.say(escape(totals_line(report)))


def _error(error: LeanOpsError) -> dict[str, Any]:
    fields = ("what", "where", "found", "expected", "remedy")
    return {"message": str(error), **{name: getattr(error, name) for name in fields}}


def _show_refused(call: App, report: Report) -> None:
    for refused in report.refused[:_SHOWN_REFUSALS]:
        place, letter = refused.place, refused.letter
        where = f"{spoken_name(place.file)}:{place.line}"
        call.console.say(
            escape(f"{where}: {letter.error_type}: {letter.error_message}; kept in {refused.archive_path}")
        )
    more = report.dead_letters.total() - _SHOWN_REFUSALS
    if more > 0:
        call.console.say(f"and {more} more dead letters, in dlq-archive/{report.topic}/ and the table dlq_errors")


def totals_line(report: Report) -> str:
    """What became of all lines, in one."""
    if not report.lines:
        return f"nothing to ingest into {report.topic}: the input is empty"
    by_type = ", ".join(f"{count} {kind}" for kind, count in sorted(report.dead_letters.items()))
    dead = f"{report.dead_letters.total()} dead letters{f' ({by_type})' if by_type else ''}"
    return f"{report.topic}: {report.lines} lines: {report.raw} in RAW, {dead}, {report.blank} blank"


def _others_line(others: dict[str, int]) -> str:
    """Whose records were left alone, the most first."""
    most = sorted(others, key=lambda topic: (-others[topic], topic))
    named = ", ".join(f"{topic} {others[topic]}" for topic in most[:_SHOWN_REFUSALS])
    more = f" and {len(most) - _SHOWN_REFUSALS} more topics" if len(most) > _SHOWN_REFUSALS else ""
    return f"left alone, because they are other topics': {named}{more}; ingest the same files for each of these"


def _flush_line(landed: LandedFlush) -> str:
    first, last, flush = landed.first, landed.last, landed.flush
    file = spoken_name(last.file)
    if first.file == last.file and first.line <= last.line:  # not when a file is given twice
        lines = f"lines {first.line}-{last.line} of {file}"
    else:
        lines = f"line {first.line} of {spoken_name(first.file)} to line {last.line} of {file}"
    return escape(f"{lines}: {flush.raw} rows in RAW snapshot {flush.snapshot_id}, {flush.errors} dead letters")


def _document(report: Report) -> dict[str, Any]:
    return {
        "topic": report.topic,
        "files": list(report.files),
        "totals": {
            "lines": report.lines,
            "raw": report.raw,
            "dead_letters": report.dead_letters.total(),
            "blank": report.blank,
        },
        "dead_letters_by_type": dict(sorted(report.dead_letters.items())),
        "flushes": [_flush(landed) for landed in report.flushes],
        "refused": [
            {
                **_place(refused.place),
                "error_type": str(refused.letter.error_type),
                "error_message": refused.letter.error_message,
                "archive_path": refused.archive_path,
            }
            for refused in report.refused
        ],
        "refused_not_listed": report.refused_not_listed,
    }


def _flush(landed: LandedFlush) -> dict[str, Any]:
    return {
        "flush_id": landed.flush.flush_id,
        "snapshot_id": str(landed.flush.snapshot_id),  # text: many readers of JSON round large numbers
        "raw": landed.flush.raw,
        "dead_letters": landed.flush.errors,
        "first": _place(landed.first),
        "last": _place(landed.last),
    }


def _place(place: Place) -> dict[str, Any]:
    return {"file": place.file, "line": place.line}
