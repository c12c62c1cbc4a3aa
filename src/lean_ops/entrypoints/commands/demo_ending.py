"""What the demo ends with: the ledger, the lake against what was foretold, one key's story, what to type next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape

from lean_ops.entrypoints.commands.reading import trace_document, trace_lines
from lean_ops.entrypoints.commands.reconcile import finding_line
from lean_ops.entrypoints.commands.reconcile import verdict as books_verdict
from lean_ops.entrypoints.commands.verify import difference_lines, notes, verdict
from lean_ops.entrypoints.console import Console
from lean_ops.entrypoints.context import App

if TYPE_CHECKING:
    from lean_ops.ledger.account import ZoneAccount
    from lean_ops.ledger.verify_result import Verification
    from lean_ops.operate.demo_fates import Fates
    from lean_ops.operate.demo_folder import DemoFolder

DEMO_FOLDER: Final = "demo"
_LEDGER: Final = (
    *("zone", "records_in", "records_out", "inserted", "updated", "duplicates", "superseded", "errors"),
    *("rows", "waiting", "balanced"),
)
_TRY_NEXT: Final = (
    "status",
    "errors orders",
    "drift readings",
    "reconcile",
    "reconcile --recount",
    'query "SELECT status, count(*) AS orders, sum(amount) AS total FROM curated.orders GROUP BY ALL ORDER BY ALL"',
    'query "SELECT order_id, customer_email, amount, updated_at FROM curated.orders ORDER BY amount DESC LIMIT 5"',
    'query "SELECT orderid, status, amount FROM standardized.orders_latest ORDER BY orderid LIMIT 5"',
    'query "SELECT error_type, error_message, count(*) AS records FROM curated.errors GROUP BY ALL ORDER BY ALL"',
    'query "SELECT recorded_at, topic_name, zone, kind, records_in, errors FROM ops.reconciliation_log ORDER BY ALL"',
)
_IN_WORDS: Final = {
    "curated": "rows in Curated",
    "replaced": "replaced by a newer version",
    "superseded": "superseded",
    "curated_errors": "curated errors",
    "parse_errors": "parse errors",
    "duplicates": "duplicates",
    "dead_letters": "dead letters",
    "not_curated": "that end in Standardized",
    "pending_in_standardized": "that wait in Standardized",
    "pending_in_raw": "that wait in RAW",
}


def announce(console: Console, text: str) -> None:
    """A heading of the story."""
    console.say(f"\n[bold]{escape(text)}[/bold]")


@dataclass(frozen=True)
class Ending:
    """The parts of the ending: each is announced in a line, shown, and returned as data."""

    call: App
    folder: DemoFolder
    topics: tuple[str, ...]

    def ledger(self) -> dict[str, Any]:
        """The books of everything that ever came in, per topic and zone, checked as `reconcile` does."""
        from lean_ops.operate.demo_fates import fates_of

        console = self.call.console
        accounts = self.call.services.reconciler(self.call.services.state).reconcile(self.topics)
        zones, fates = [zone for account in accounts for zone in account.zones], fates_of(accounts)
        announce(console, "The ledger: in = new + updated + copies + superseded + errors, for every topic and zone.")
        if not console.as_json:
            console.rows("reconciliation_log", list(map(ledger_line, zones)))
        console.say(in_words(fates))
        for zone in zones:
            for finding in zone.findings:
                console.say(finding_line(zone, finding))
        console.say(escape(f"Books against tables, as `lean-ops reconcile` does: {books_verdict(accounts)}"))
        return {"ledger": list(map(_ledger_row, zones)), "fates": asdict(fates)}

    def verified(self) -> dict[str, Any]:
        """Each message of all runs so far against what was foretold of it, as `verify` does.

        More copies than foretold are no difference: sending a file once more is among the things to try.
        """
        from lean_ops.ledger.oracle import read_oracle
        from lean_ops.ledger.verify import Verifier

        parts = self.call.services.reconciler(self.call.services.state)
        oracle = read_oracle(self.folder.fates())
        result = Verifier(parts, oracle, redelivered=True, complete=self.folder.tells_all).verify()
        self._show(result)
        return result.document()

    def _show(self, result: Verification) -> None:
        console = self.call.console
        for topic, problem in result.problems.items():
            console.fault(f"{topic} can't be compared: {problem}")
        for number, difference in enumerate(result.shown, start=1):
            for line in difference_lines(number, difference):
                console.say(escape(line))
        for note in notes(result, redelivered=True):
            console.say(escape(note))
        console.say(f"Lake against what was foretold, as `lean-ops verify` does: {verdict(result)}")

    def trace(self, key: str, topic: str) -> dict[str, Any]:
        """All messages of a key: their copies, their versions, and the current one."""
        from lean_ops.ledger.trace import Tracer, Wanted

        services = self.call.services
        tracer = Tracer(services.lake.file, services.settings.names, services.state)
        found = tracer.trace(Wanted.key(key), topic)
        announce(
            self.call.console, "One order's story: copies of its message, corrections, a late older version of it:"
        )
        for line in trace_lines(found):
            self.call.console.say(line)
        return trace_document(found)

    def next_commands(self, key: str, refused: str) -> list[str]:
        """What to type now; `refused` is a message that broke a rule."""
        home = self.call.services.settings.home
        traces = (f"trace {shlex.quote(refused)}", f"trace --key {shlex.quote(key)}")
        again = shlex.quote(_near(self.folder.path / "day1" / "orders.jsonl"))
        words = (*_TRY_NEXT, self._verify_words(), *traces, f"ingest orders {again}", "run")
        commands = [f"{_program()} --home {shlex.quote(_near(home))} {word}" for word in words]
        announce(
            self.call.console,
            "Try next (the last two send day 1 of orders once more, which makes nothing but duplicates):",
        )
        for command in commands:
            self.call.console.say(f"  {escape(command)}")
        return commands

    def _verify_words(self) -> str:
        fates = [f"--fates {shlex.quote(_near(path))}" for path in self.folder.fates()]
        return " ".join(["verify", "--redelivered", *["--complete"] * self.folder.tells_all, *fates])


def _ledger_row(zone: ZoneAccount) -> dict[str, Any]:
    """A zone's books for a machine."""
    document = zone.document()
    return {"topic": zone.topic, **{name: document[name] for name in _LEDGER}}


def ledger_line(zone: ZoneAccount) -> dict[str, Any]:
    """A zone's books in words that fit on a screen; what is not there is no number."""
    counts = zone.counts
    return {
        "topic": zone.topic,
        "zone": str(zone.zone),
        "in": counts.records_in,
        "new": counts.inserted,
        "updated": counts.updated or None,
        "copies": counts.duplicates or None,
        "superseded": counts.superseded or None,
        "errors": counts.errors or None,
    }


def in_words(fates: Fates) -> str:
    """What became of every body that ever came in."""
    counts = asdict(fates)
    return f"{fates.bodies} bodies came in = " + " + ".join(
        f"{counts[name]} {words}" for name, words in _IN_WORDS.items() if counts[name] or name == "curated"
    )


def _program() -> str:
    """How this program was called, so that the same words work again."""
    return "lean-ops" if shutil.which("lean-ops") else shlex.quote(sys.argv[0])


def _near(path: Path) -> str:
    """A path as seen from the working directory if it is below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
