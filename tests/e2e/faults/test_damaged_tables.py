"""Tables damaged by hand: one topic's trouble stops that topic, says how it is mended, and leaves no trace after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.e2e.faults import damaged_home as by
from tests.e2e.faults.damaged_home import DAY_TWO, DamagedHome, Mend

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FLAT = ("standardized",)
BOTH = ("standardized", "curated")
RESTORE = "Restore the file from a backup"
BACK = "of the table its current one again"


@dataclass(frozen=True)
class Fault:
    """A damage, what the run must say of it, and which zones get their batch all the same.

    `at_the_door`: ingest says it too. `seen_by`: what `reconcile` needs to notice it: books, rows, or nothing helps.
    """

    how: Callable[[DamagedHome, str], Mend]
    says: tuple[str, ...]
    zones: tuple[str, ...] = BOTH
    done: tuple[str, ...] = ()
    at_the_door: bool = False
    seen_by: str = "books"


ON_FILES = {
    "raw_metadata": Fault(by.truncated(by.of_metadata("raw")), ("is damaged", RESTORE), FLAT, at_the_door=True),
    "raw_folder": Fault(by.folder_deleted("raw"), ("metadata file is missing", RESTORE), FLAT, at_the_door=True),
    "raw_data_cut": Fault(by.truncated(by.of_data("raw")), ("a data file is damaged", RESTORE), FLAT, seen_by="rows"),
    "std_metadata": Fault(by.garbled(by.of_metadata("standardized")), ("is damaged", RESTORE), FLAT),
    "std_data_gone": Fault(
        by.deleted(by.of_data("standardized")), ("is missing", ".parquet", RESTORE), FLAT, seen_by="rows"
    ),
    "std_manifest": Fault(
        by.truncated(by.of_manifest("standardized")), ("is damaged", ".avro", RESTORE), FLAT, seen_by="rows"
    ),
    "cur_metadata": Fault(by.truncated(by.of_metadata("curated")), ("is damaged", RESTORE), done=FLAT),
    "cur_manifests": Fault(
        by.truncated(by.of_manifest_list("curated")), ("is damaged", ".avro", RESTORE), done=FLAT, seen_by="rows"
    ),
    "schema_gone": Fault(
        by.deleted(by.of_schema), ("its file is gone", "submit the schema again"), FLAT, seen_by="nothing"
    ),
    "schema_garbled": Fault(
        by.garbled(by.of_schema), ("is not UTF-8 text", "put it right, or remove the file"), FLAT, seen_by="nothing"
    ),
}
ON_TABLES = {
    "raw_expired": Fault(by.expired("raw"), ("no longer in the history", "Bring back the metadata file"), FLAT),
    "raw_dropped": Fault(by.dropped("raw"), ("gone from the catalog", "register its newest"), FLAT, at_the_door=True),
    "std_dropped": Fault(by.dropped("standardized"), ("gone from the catalog", "register its newest"), FLAT),
    "cur_dropped": Fault(by.dropped("curated"), ("gone from the catalog", "register its newest"), done=FLAT),
    "std_row_deleted": Fault(by.changed("standardized", by.delete_a_row), ("no batch made", "Move main back to"), FLAT),
    "std_stranger": Fault(by.changed("standardized", by.append_a_row), ("no batch made", "Move main back to"), FLAT),
    "std_rolled_back": Fault(
        by.changed("standardized", by.roll_back), ("main was moved", "Move main to snapshot"), FLAT
    ),
    "cur_row_deleted": Fault(by.changed("curated", by.delete_a_row), ("no batch made", "Move main back to"), done=FLAT),
    "cur_rolled_back": Fault(by.changed("curated", by.roll_back), ("main was moved", "Move main to"), done=FLAT),
}
ON_COLUMNS = {
    "raw_column": Fault(
        by.altered("raw", by.drop("json_payload")), ("altered", BACK), FLAT, at_the_door=True, seen_by="nothing"
    ),
    "std_col_dropped": Fault(
        by.altered("standardized", by.drop("a")), ("no such column", BACK), FLAT, seen_by="nothing"
    ),
    "std_col_renamed": Fault(
        by.altered("standardized", by.rename("a")), ("found a_renamed", BACK), FLAT, seen_by="nothing"
    ),
    "std_col_retyped": Fault(
        by.altered("standardized", by.drop("a"), by.add_int("a", "/a")),
        ("expected a string", BACK),
        FLAT,
        seen_by="nothing",
    ),
    "std_col_uncommented": Fault(
        by.altered("standardized", by.without_comment("a")), ("comment '/a'", BACK), FLAT, seen_by="nothing"
    ),
    "cur_col_dropped": Fault(
        by.altered("curated", by.drop("a")), ("no such column", BACK), done=FLAT, seen_by="nothing"
    ),
}
# Here Curated has not read the newest Standardized batch, which is empty, when the snapshots behind it go.
EXPIRED = Fault(by.expired("standardized"), ("no longer in the history", "Bring back the metadata file"))
FAULTS = {**ON_FILES, **ON_TABLES, **ON_COLUMNS, "std_expired": EXPIRED}
WELL = {"undisturbed": BOTH, "undisturbed_flat": FLAT, "std_sorted": FLAT}


@dataclass
class Story:
    """What was said while the home was damaged and after it was mended."""

    home: DamagedHome
    at_the_door: dict[str, str]
    run: dict[str, Any]
    status: str
    reconciled: dict[str, Any]
    recounted: dict[str, Any]
    read: dict[str, str]
    mended: dict[str, Any]
    reconciled_again: dict[str, Any]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Day one for all; damage; day two, looked at from everywhere; the mending, and one run more."""
    home = DamagedHome(tmp_path_factory.mktemp("damaged"))
    home.begin({**WELL, **{topic: fault.zones for topic, fault in FAULTS.items()}})
    home.command_line.run("run")
    at_the_door = _damage(home)
    run, status = home.command_line.json("run", code=1), home.command_line.run("status")
    reconciled = _by_topic(home.command_line.json("reconcile", code=1))
    in_rows = [topic for topic, fault in FAULTS.items() if fault.seen_by == "rows"]
    recounted = _by_topic(home.command_line.json("reconcile", *in_rows, *WELL, "--recount", code=1))
    read = {
        "query": home.command_line.run("query", "SELECT * FROM raw.raw_data_cut", code=1),
        "query metadata": home.command_line.run("query", "SELECT * FROM standardized.std_metadata", code=1),
        "trace": home.command_line.run("trace", "m1", "--topic", "std_manifest", code=1),
        "trace well": home.command_line.run("trace", "m1", "--topic", "undisturbed"),
    }
    _mend(home)
    mended = home.command_line.json("run")
    again = _by_topic(home.command_line.json("reconcile"))
    return Story(home, at_the_door, run, status, reconciled, recounted, read, mended, again)


def _damage(home: DamagedHome) -> dict[str, str]:
    """Damage every topic; what ingest said of those that it must not take any more."""
    home.standardize_nothing("std_expired")
    for topic in (*WELL, *(topic for topic in FAULTS if not _waits(topic))):
        home.ingest(topic, DAY_TWO)
    home.damage("std_sorted", by.sorted_by("standardized", "message_id"))
    for topic, fault in FAULTS.items():
        home.damage(topic, fault.how)
    bodies = "\n".join(DAY_TWO).encode()
    doors = [topic for topic, fault in FAULTS.items() if fault.at_the_door]
    return {topic: home.command_line.run("ingest", topic, "-", code=1, stdin=bodies) for topic in doors}


def _waits(topic: str) -> bool:
    """Whether the second day's messages come only after the mending."""
    return (FAULTS[topic].at_the_door and topic != "raw_column") or topic == "std_expired"


def _mend(home: DamagedHome) -> None:
    for topic, mend in home.mends.items():
        mend()
        if topic in FAULTS and _waits(topic):
            home.ingest(topic, DAY_TWO)


def _by_topic(document: dict[str, Any]) -> dict[str, Any]:
    return {account["topic"]: account for account in document["topics"]}


def outcome(run: dict[str, Any], topic: str) -> dict[str, Any]:
    (found,) = (one for one in run["topics"] if one["topic"] == topic)
    return dict(found)


@pytest.mark.parametrize("topic", FAULTS)
def test_the_run_says_what_is_wrong_and_how_it_is_mended(story: Story, topic: str) -> None:
    found = outcome(story.run, topic)
    assert found["status"] == "FAILED"
    for words in FAULTS[topic].says:
        assert words in found["reason"]
    for unknown in ("Traceback", "Error:", "Exception", "Py4J", "paused"):
        assert unknown not in found["reason"].replace("JSONDecodeError:", "").replace("ValidationError:", "")


@pytest.mark.parametrize("topic", FAULTS)
def test_a_zone_that_is_whole_gets_its_batch_and_a_damaged_one_gets_nothing(story: Story, topic: str) -> None:
    assert tuple(batch["zone"] for batch in outcome(story.run, topic)["batches"]) == FAULTS[topic].done


@pytest.mark.parametrize("topic", WELL)
def test_topics_that_are_well_go_on(story: Story, topic: str) -> None:
    found = outcome(story.run, topic)
    assert (found["status"], found["reason"]) == ("SUCCEEDED", None)
    assert story.reconciled[topic]["balanced"]
    assert story.recounted[topic]["balanced"]


@pytest.mark.parametrize("topic", [topic for topic, fault in FAULTS.items() if fault.at_the_door])
def test_ingest_takes_nothing_into_a_damaged_table_and_says_why(story: Story, topic: str) -> None:
    for words in FAULTS[topic].says:
        assert words in story.at_the_door[topic]
    assert "Traceback" not in story.at_the_door[topic]


@pytest.mark.parametrize("topic", FAULTS)
def test_reconcile_tells_the_truth_while_a_table_is_damaged(story: Story, topic: str) -> None:
    seen_by = FAULTS[topic].seen_by
    assert story.reconciled[topic]["balanced"] is (seen_by != "books")
    if seen_by == "rows":
        assert not story.recounted[topic]["balanced"]


def test_commands_that_read_name_the_damaged_file_and_answer_for_the_others(story: Story) -> None:
    assert "a data file is damaged" in story.read["query"]
    assert "its metadata file is damaged" in story.read["query metadata"]
    assert "a metadata file of the table is damaged" in story.read["trace"]
    assert "replaced: the key's row" in story.read["trace well"]
    assert not any("Traceback" in said for said in (*story.read.values(), story.status))
    assert all(topic in story.status for topic in FAULTS)


@pytest.mark.parametrize("topic", FAULTS)
def test_mended_and_run_once_a_topic_is_as_if_nothing_had_happened(story: Story, topic: str) -> None:
    assert outcome(story.mended, topic)["status"] == "SUCCEEDED"
    assert story.reconciled_again[topic]["balanced"]
    reference = story.home.seen("undisturbed" if FAULTS[topic].zones == BOTH else "undisturbed_flat")
    found = story.home.seen(topic)
    if topic == "std_expired":  # it has a dead letter and an empty batch more
        for more in ("ledger", "raw.dlq_errors"):
            assert set(reference.pop(more)) <= set(found.pop(more))
    assert found == reference


def test_the_reference_is_what_two_days_come_to(story: Story) -> None:
    reference = story.home.seen("undisturbed")
    sizes = {table: len(rows) for table, rows in reference.items()}
    refused = {"raw.dlq_errors": 1, "standardized.parse_errors": 2, "curated.errors": 2}
    assert sizes == {"standardized": 6, "curated": 3, **refused, "ledger": 6, "drift": 5, "branches": 2}
    assert story.home.seen("std_sorted") == story.home.seen("undisturbed_flat")


def test_a_state_store_that_was_deleted_costs_nothing_and_repeats_nothing(story: Story) -> None:
    home = story.home
    before = home.seen("undisturbed")
    home.forget_state()
    assert "NO_SCHEMA" in home.command_line.run("status")
    home.submit("undisturbed", BOTH)
    assert outcome(home.command_line.json("run", "undisturbed"), "undisturbed")["status"] == "SUCCEEDED"
    assert "nothing new" in home.command_line.run("run", "undisturbed")
    assert home.seen("undisturbed") == before
    assert home.command_line.json("reconcile", "undisturbed", "--recount")["balanced"]
