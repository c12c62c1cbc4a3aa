"""`prepare`: all that Spark needs here, made beforehand."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from lean_ops.entrypoints.context import app_of
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from lean_ops.lake.class_archive import ClassArchive
    from lean_ops.wiring import Services

_END_SECONDS: Final = 300.0


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("prepare")(prepare)


def prepare(ctx: typer.Context) -> None:
    """Fetch jars, compile our own and keep Java's classes ready: later starts are faster and need no network.

    Concerns this machine, not the home. Safe to repeat; what is there stays.
    """
    call = app_of(ctx)
    archive = _archive(call.services)
    was_there = archive.is_there
    if not was_there:
        call.console.say("getting Java's classes ready: both hops run once on made-up data, in a folder of their own")
    made = archive.make(lambda option: _play(call.services, option))
    if call.console.as_json:
        call.console.document({"class_archive": str(archive.file) if made else None, "made": made and not was_there})
    elif made:
        call.console.say(f"Spark starts with the classes in {archive.file}")
    else:
        call.console.say("this Java keeps no classes; Spark starts without")


def _archive(services: Services) -> ClassArchive:
    from lean_ops.lake.class_archive import ClassArchive
    from lean_ops.lake.java import find_java
    from lean_ops.lake.kernel_jar import spark_jars

    cache = services.settings.cache_dir
    java = find_java(cache, os.environ)
    return ClassArchive.of(cache, java, spark_jars(cache, java, services.notice))


def _play(services: Services, option: str) -> None:
    """Take topics through both hops twice, so that rows are appended, then merged; Java has ended when this returns."""
    from lean_ops.entrypoints.logs import log_into
    from lean_ops.lake.java_process import end_java

    with tempfile.TemporaryDirectory(prefix="lean-ops-prepare-") as folder:
        home = Path(folder)
        given = {"profile": "embedded", "database_prefix": "", "spark_master": "local[*]", "spark_java_options": option}
        settings = services.settings.model_copy(update={"home": home, **given})
        rehearsal = replace(services, loaded=services.loaded.model_copy(update={"settings": settings}))
        log_into(settings.logs_dir)
        try:
            _both_days(rehearsal, home)
        finally:
            rehearsal.close()
            end_java(_END_SECONDS)


def _both_days(services: Services, folder: Path) -> None:
    from lean_ops.operate.demo import TOPICS, two_days
    from lean_ops.operate.generate.families import example_schemas

    services.lake.ensure_shared()
    days = {topic: two_days(topic, services.clock()) for topic in TOPICS}
    for topic in TOPICS:
        content = (example_schemas() / f"{topic}.json").read_bytes()
        services.submissions.submit(topic, content, submitted_by="prepare", now=services.clock())
    for number in (0, 1):
        for topic, both in days.items():
            file = folder / f"{topic}-{number}.jsonl"
            file.write_bytes(both[number].content)
            services.intake(topic, topic).take(topic, [str(file)])
        outcomes = list(services.new_run().execute(services.planner.plan(TOPICS)))
        failed = [outcome for outcome in outcomes if outcome.status != "SUCCEEDED"]
        if failed:
            raise TerminalError("made-up data could not be processed", where=failed[0].topic, found=failed[0].reason)
