"""Real processes that are signalled, and what is left of them and of their leases."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from tests.e2e.cli import LEAN_OPS, CommandLine, body, curated_schema_of
from tests.quick_java import QUICK_JAVA

from lean_ops.settings import load_settings
from lean_ops.wiring import Services

Found = TypeVar("Found")
LIMIT = 400.0


def wait_until(look: Callable[[], Found], what: str, limit: float = LIMIT) -> Found:
    """The first answer that is true."""
    deadline = time.monotonic() + limit
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"in {limit} s not seen: {what}")
        time.sleep(0.03)
    return found


@dataclass(frozen=True)
class Seen:
    """A process as /proc has it; `started` tells it from a later one of the same number."""

    pid: int
    parent: int
    started: str
    command: str

    @property
    def alive(self) -> bool:
        now = look_at(self.pid)  # whose child it is may have changed: one whose parent was killed gets another
        return now is not None and now.started == self.started


def look_at(pid: int) -> Seen | None:
    """A process that is there and no zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    return None if fields[0] == "Z" else Seen(pid, int(fields[1]), fields[19], command)


def below(pid: int) -> list[Seen]:
    """The living processes that a process has started, and theirs."""
    every = [seen for entry in Path("/proc").iterdir() if entry.name.isdigit() and (seen := look_at(int(entry.name)))]
    found, parents = [], {pid}
    while children := [seen for seen in every if seen.parent in parents and seen not in found]:
        found += children
        parents = {seen.pid for seen in children}
    return found


@dataclass
class Running:
    """`lean-ops` at work, in a process group of its own; what it says goes to a file."""

    process: subprocess.Popen[bytes]
    words: Path
    family: list[Seen] = field(default_factory=list)

    @property
    def said(self) -> str:
        return self.words.read_text(errors="replace")

    def remember_family(self) -> list[Seen]:
        """Everybody it has started, as long as that can still be asked."""
        self.family = list({*self.family, *below(self.process.pid)})
        return self.family

    def java(self) -> Seen:
        """Spark's Java, once it takes commands."""

        def spark() -> Seen | None:
            found = [seen for seen in self.remember_family() if "SparkSubmit" in seen.command]
            return next((seen for seen in found if "launcher.Main" not in seen.command and seen.alive), None)

        return self.until(spark, "Spark's Java")

    def until(self, look: Callable[[], Found], what: str) -> Found:
        """The first answer that is true, as long as the process is there."""

        def at_work() -> Found:
            found = look()
            assert found or self.process.poll() is None, self.said
            return found

        return wait_until(at_work, what)

    def until_said(self, words: str) -> None:
        """Wait for words; it must still be there to say them."""
        self.until(lambda: words in self.said, words)

    def signal(self, number: signal.Signals, *, to_all: bool = False) -> None:
        """A signal to the process, or to its whole group as a terminal would send it."""
        self.remember_family()
        if to_all:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)

    def end(self, code: int, limit: float = LIMIT) -> str:
        """What it said in all; it left with that code, and nobody whom it started is left."""
        found = self.process.wait(timeout=limit)
        assert found == code, f"exit {found}\n{self.said}"
        self.nobody_is_left()
        return self.said

    def nobody_is_left(self) -> None:
        wait_until(lambda: not [seen for seen in self.family if seen.alive], "the end of its processes", 60)


@dataclass(frozen=True)
class Home(CommandLine):
    """A home whose topics are driven by real commands."""

    environ: dict[str, str] = field(default_factory=dict)

    def until_writing(self, run: Running, topic: str) -> None:
        """Wait until the run's Spark writes Standardized rows of the topic."""
        folder = self.home / "warehouse" / "iceberg_standardized_db" / topic / "data"
        before = set(folder.rglob("*.parquet"))
        run.java()
        run.until(lambda: set(folder.rglob("*.parquet")) - before, "a new file")

    @contextmanager
    def running(
        self,
        *arguments: str,
        command: tuple[str, ...] | None = None,
        stdin: Any = subprocess.DEVNULL,
        terminal: int | None = None,
        **environ: str,
    ) -> Iterator[Running]:
        """A command in the background, in a session that may have a terminal; it does not outlive this block."""
        words = self.home.parent / f"words-{time.monotonic_ns()}"
        line = [*(command or (str(LEAN_OPS), "--home", str(self.home))), *arguments]
        given = {**os.environ, "LEAN_OPS_SPARK_JAVA_OPTIONS": QUICK_JAVA, **self.environ, **environ}
        take_terminal = None if terminal is None else lambda: fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        with words.open("wb") as out:
            process = subprocess.Popen(
                line,
                stdin=stdin,
                stdout=out if terminal is None else terminal,
                stderr=subprocess.STDOUT,
                env=given,
                start_new_session=True,
                preexec_fn=take_terminal,  # noqa: PLW1509  the only way to a terminal of its own
            )
        running = Running(process, words)
        try:
            yield running
        finally:
            for seen in [*running.remember_family()]:
                if seen.alive:
                    os.kill(seen.pid, signal.SIGKILL)
            if process.poll() is None:
                process.kill()
            process.wait(timeout=30)

    def open_topics(self, bodies: dict[str, bytes], **settings: Any) -> None:
        """Topics with their first data and an open gate to Curated."""
        services = Services(load_settings({"home": self.home, **settings}, environ={}))
        for topic, lines in bodies.items():
            file = self.home.parent / f"{topic}.jsonl"
            file.write_bytes(lines)
            services.intake(topic, topic).take(topic, [str(file)])
            schema = curated_schema_of(topic, {"a": {"type": "INT"}}).encode()
            services.submissions.submit(topic, schema, submitted_by="test", now=services.clock())
            with services.lake.load(services.lake.names.standardized(topic)).transaction() as change:
                # A file appears with its first group of rows: then Spark has most of the batch still before it.
                change.set_properties({"write.parquet.row-group-size-bytes": "65536"})
        services.close()

    def _state(self, question: str) -> list[Any]:
        if not (self.home / "state.db").is_file():
            return []
        with closing(sqlite3.connect(f"file:{self.home}/state.db?mode=ro", uri=True, timeout=30)) as db:
            return [row[0] for row in db.execute(question)]

    def open_batches(self) -> set[str]:
        """Pipelines whose batch is begun and not booked."""
        return set(self._state("SELECT pipeline_id FROM checkpoints WHERE intent IS NOT NULL"))

    def leases(self) -> set[str]:
        """Topics whose lease somebody has."""
        return set(self._state("SELECT topic_name FROM locks WHERE owner IS NOT NULL"))

    def leases_end_at(self) -> datetime | None:
        """When the last of the leases that somebody has expires."""
        (last,) = self._state("SELECT max(expires_at) FROM locks WHERE owner IS NOT NULL")
        return datetime.fromisoformat(last) if last else None

    def presences(self) -> list[str]:
        """Files by which processes say that they are there."""
        return sorted(path.name for path in (self.home / "runners").glob("*.lock"))

    def rows(self, *tables: str) -> list[tuple[int, int]]:
        """Each table's rows, and how many different messages they are."""
        question = "SELECT {} AS t, count(*) AS n, count(DISTINCT message_id) AS m FROM {}"
        parts = [question.format(*numbered) for numbered in enumerate(tables)]
        return [(row["n"], row["m"]) for row in self.json("query", " UNION ALL ".join(parts) + " ORDER BY t")]

    def failures(self) -> dict[str, int]:
        """Failures in a row of each topic that has any."""
        return {row["topic"]: row["failures"] for row in self.json("status") if row["failures"]}

    def is_settled(self, *topics: str) -> None:
        """The ledger agrees with itself and with a count of the tables; nothing is open and nobody there."""
        self.run("reconcile", *topics, "--recount")
        assert (self.open_batches(), self.leases(), self.presences()) == (set(), set(), [])


def bodies(count: int, prefix: str = "m", **more: Any) -> bytes:
    """Queue bodies with a key each, one a line."""
    lines = (
        body(f"{prefix}{n}", {"a": n, "b": {"c": "x" * 60}}, idempotency_key=f"{prefix}{n}", **more)
        for n in range(count)
    )
    return "\n".join(lines).encode() + b"\n"
