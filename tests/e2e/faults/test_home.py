"""Faults of a whole home: a full disk, no right to write, a shared table damaged. Nothing is lost or doubled."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.cli import CommandLine, body, curated_schema_of
from tests.e2e.faults.damaged_home import DAY_ONE
from tests.e2e.faults.namespace import Namespace, fill, read_only, small_disk

HERE = Path(__file__).parent
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

MEGABYTES = 48
BODIES = "\n".join(DAY_ONE).encode()
COLUMNS = {"a": {"type": "INT"}}
# Room that is left when ingest starts: none, then enough for the state's files, the archive, RAW, the books.
ROOM = (0, 32_768, 49_152, 65_536, 81_920, 131_072)
FULL = {
    "full_at_intent": "full:standardized:intent stored",
    "full_at_rows": "full:standardized:rows staged",
    "full_at_errors": "full:standardized:errors written",
    "full_at_publish": "full:standardized:balanced",
    "full_at_ledger": "full:standardized:published",
    "full_at_merge": "full:curated:intent stored",
    "full_at_checkpoint": "full:curated:history written",
}
CUT = {
    "cut_parse_errors": "cut:iceberg_standardized_db.parse_errors",
    "cut_errors": "cut:iceberg_curated_db.errors",
    "cut_ledger": "cut:ops_db.reconciliation_log",
    "cut_history": "cut:ops_db.job_run_history",
}
DROPPED = {
    "dropped_parse_errors": "dropped:iceberg_standardized_db.parse_errors",
    "dropped_errors": "dropped:iceberg_curated_db.errors",
    "dropped_ledger": "dropped:ops_db.reconciliation_log",
}
SAID = {
    **dict.fromkeys(FULL, ("full", "Free some room and do the same again.")),
    **dict.fromkeys(CUT, ("its metadata file is damaged", "Restore the file from a backup")),
    **dict.fromkeys(DROPPED, ("there is no such table", "`lean-ops init`")),
}


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    with small_disk(tmp_path_factory.mktemp("disk"), MEGABYTES) as namespace:
        yield namespace


def test_ingest_on_a_full_disk_says_so_and_brings_every_line_in_once_there_is_room(disk: Namespace) -> None:
    disk.said("ingest", "events", "-", stdin=BODIES)
    landed = 1
    for room in ROOM:
        filler = fill(disk.seen_from_outside, leave=room)
        done = disk.lean_ops("ingest", "events", "-", stdin=BODIES)
        filler.unlink()
        landed += "landed" in done.stderr and "nothing landed" not in done.stderr
        assert done.returncode == 1, (room, done.stdout)
        assert "full" in done.stderr
        assert "Free some room and do the same again." in done.stderr
        assert "Traceback" not in done.stderr
    disk.said("ingest", "events", "-", stdin=BODIES)
    [raw, *_] = disk.json("reconcile", "events", "--recount")["topics"][0]["zones"]
    assert raw["balanced"]
    assert (raw["rows"], raw["errors"]) == (5 * (landed + 1), landed + 1)
    assert 1 < landed < len(ROOM)  # some came to a halt before the commit, some after it


def test_a_fault_of_the_whole_home_stops_a_run_and_the_next_one_finishes_the_same_batches(disk: Namespace) -> None:
    """The disk is full at some step, or a table that all topics share is damaged or dropped; then all is well again."""
    faults = {**FULL, **CUT, **DROPPED}
    begun = disk.run(sys.executable, str(HERE / "begin.py"), str(disk.folder), *faults, "undisturbed")
    assert begun.returncode == 0, begun.stderr
    stops = [f"{topic}={fault}" for topic, fault in faults.items()]
    done = disk.run(sys.executable, str(HERE / "faulty_runs.py"), str(disk.home), *stops)
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout.splitlines()[-1])
    for topic, expected in SAID.items():
        status, reason = outcomes[topic]
        assert status == "FAILED", topic
        assert all(words in reason for words in expected), (topic, reason)

    disk.said("run")

    assert "nothing new" in disk.said("run")
    accounts = {account["topic"]: account for account in disk.json("reconcile", "--recount")["topics"]}
    for topic in faults:
        assert accounts[topic] == {**accounts["undisturbed"], "topic": topic}
    assert [zone["rows"] for zone in accounts["undisturbed"]["zones"]] == [5, 3, 2]


def test_a_home_that_cant_be_written_is_read_all_the_same_and_says_no_to_the_rest(tmp_path: Path) -> None:
    command_line = CommandLine(tmp_path / "home")
    schema = tmp_path / "schema.json"
    schema.write_text(curated_schema_of("events", COLUMNS))
    command_line.run("ingest", "events", "-", stdin=BODIES)
    command_line.run("schema", "submit", "events", str(schema))
    with read_only(tmp_path) as home:
        assert "events" in home.said("status")
        assert "5" in home.said("query", "SELECT count(*) FROM raw.events")
        assert "everything balances" in home.said("reconcile")
        assert "raw copy ingested" in home.said("trace", "m1")
        assert "READY" in home.said("schema", "list")
        assert "process" in home.said("run", "--explain")
        newer = body("m9", {"a": 9}).encode()
        submit = ("schema", "submit", "events", str(schema))
        for arguments in (("ingest", "events", "-"), ("run",), submit, ("pause", "events")):
            said = home.said(*arguments, code=1, stdin=newer)
            assert "can't be written" in said, said
            assert "Make the home a folder that you can write to." in said
    command_line.run("ingest", "events", "-", stdin=newer)
    assert command_line.json("query", "SELECT count(*) AS n FROM raw.events") == [{"n": 6}]
