"""`verify` over a real home: each topic tells the same story with one thing disturbed, and that is what is found."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from tests.integration.verify_home import VerifyHome
from tests.integration.verify_stories import RIGHT, UNKNOWN, WRONG
from tests.registry import put

from lean_ops.entrypoints.cli import main
from lean_ops.ledger import recount_checks
from lean_ops.model.registry import RegistryItem, Status

Run = Callable[..., tuple[int, str, str]]
GOOD_FATES = {"dead_letter": 1, "duplicate": 1, "parse_error": 1, "curated": 2, "superseded": 1, "error": 1}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> VerifyHome:
    made = VerifyHome(tmp_path_factory.mktemp("verify") / "home with spaces")
    for topic, change in RIGHT.items():
        made.add(topic, change)
    for topic, (change, _) in (WRONG | UNKNOWN).items():
        made.add(topic, change)
    made.finish()
    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "250")

    def call(home: VerifyHome, *arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["--home", str(home.services.settings.home), "verify", *arguments])
        printed = capsys.readouterr()
        return int(left.value.code or 0), printed.out, printed.err

    return call


@pytest.fixture(scope="module")
def found(home: VerifyHome, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a comparison of all topics says: one file, all its topics' lines mixed."""
    file, printed = home.write(tmp_path_factory.mktemp("oracle") / "fates.jsonl"), io.StringIO()
    arguments = ["--json", "verify", "--fates", str(file), "--show", "1000"]
    with redirect_stdout(printed), pytest.raises(SystemExit) as left:
        main(["--home", str(home.services.settings.home), *arguments])
    assert left.value.code == 1
    document: dict[str, Any] = json.loads(printed.getvalue())
    assert document["problems"] == {}
    return document


def differences(document: dict[str, Any], topic: str) -> dict[str, list[str]]:
    return {one["message_id"] or "-": one["differs"] for one in document["shown"] if one["topic"] == topic}


def shown(document: dict[str, Any], topic: str) -> dict[str, Any]:
    [one] = [one for one in document["shown"] if one["topic"] == topic]
    assert isinstance(one, dict)
    return one


@pytest.mark.parametrize("topic", RIGHT)
def test_a_lake_that_is_right_has_no_difference(found: dict[str, Any], topic: str) -> None:
    assert differences(found, topic) == {}


@pytest.mark.parametrize("topic", WRONG)
def test_what_is_disturbed_is_found_and_nothing_else(found: dict[str, Any], topic: str) -> None:
    assert differences(found, topic) == WRONG[topic][1]


def test_every_difference_of_all_topics_is_counted(found: dict[str, Any], home: VerifyHome) -> None:
    assert found["differences"] == sum(len(ids) for _, ids in WRONG.values()) == len(found["shown"])
    assert found["lines"] == sum(map(len, home.lines.values()))
    assert (found["matches"], found["redelivered"], found["problems"]) == (False, 0, {})


def test_bodies_are_counted_by_fate(found: dict[str, Any], home: VerifyHome) -> None:
    told = Counter(line["fate"] for lines in home.lines.values() for line in lines)
    assert {one["fate"]: one["expected"] for one in found["fates"] if one["expected"]} == told
    in_lake = {one["fate"]: one["found"] for one in found["fates"]}
    assert in_lake["missing"] == 7  # never_came, refused_at_the_door, a copy, two lost on the way, two letters
    assert sum(in_lake.values()) >= sum(told.values())


def test_topics_of_one_file_may_be_named(home: VerifyHome, run: Run, tmp_path: Path) -> None:
    file = home.write(tmp_path / "fates.jsonl")
    code, out, _ = run(home, "--fates", str(file), "as_told", "untold", "--json")
    document = json.loads(out)
    assert (code, document["messages"], document["lines"], document["matches"]) == (0, 12, 14, True)
    assert {one["fate"]: (one["expected"], one["found"]) for one in document["fates"]} == {
        fate: (2 * bodies, 2 * bodies) for fate, bodies in GOOD_FATES.items()
    }


# what is said of a difference


def test_a_difference_says_where_the_body_stands_and_both_sides(found: dict[str, Any]) -> None:
    one = shown(found, "refused_wrongly")
    assert (one["file"], one["line"], one["kind"]) == ("refused_wrongly.jsonl", 6, "plain")
    assert one["publish_time"] == "2026-02-03T10:00:00Z"
    told = {"fates": {"curated": 1}, "reason": None, "fields": None, "version": "m3", "keys": ["k2"]}
    assert one["expected"] == told
    assert (one["found"]["fates"], one["found"]["reason"], one["found"]["fields"]) == (
        {"error": 1},
        "TYPE_CAST",
        ["amount"],
    )
    assert one["rows"] == {"raw": 1, "standardized": 1, "parse_errors": 0, "curated": 0, "errors": 1}


def test_a_message_that_is_nowhere_is_missing_with_all_its_copies(found: dict[str, Any]) -> None:
    assert shown(found, "never_came")["found"]["fates"] == {"missing": 1}
    assert shown(found, "lost_on_the_way")["found"]["fates"] == {"missing": 1}
    assert shown(found, "copy_never_came")["found"]["fates"] == {"curated": 1}


def test_a_message_that_ingestion_refused_is_no_missing_one(found: dict[str, Any]) -> None:
    side = shown(found, "refused_at_the_door")["found"]
    assert (side["fates"], side["reason"]) == ({"dead_letter": 1}, "OVERSIZED")


@pytest.mark.parametrize(
    ("topic", "wrong"),
    [
        ("other_amount", ["amount", "19.90", "20.90", True]),
        ("null_value", ["quality", "0.912", None, True]),
        ("value_for_null", ["note", None, "", True]),
        ("column_missing", ["no\nsuch 'column\"/~", "x", None, False]),
    ],
)
def test_a_wrong_value_is_shown_with_its_column(found: dict[str, Any], topic: str, wrong: list[Any]) -> None:
    [value] = shown(found, topic)["values"]
    assert [value["column"], value["expected"], value["found"], value["is_there"]] == wrong


def test_a_person_reads_all_of_a_difference(home: VerifyHome, run: Run, tmp_path: Path) -> None:
    code, out, _ = run(home, "--fates", str(home.write(tmp_path / "fates.jsonl", "other_amount")))
    lines = [line.rstrip() for line in out.splitlines()]
    assert code == 1
    assert [line.split() for line in lines if line.lstrip().startswith("curated")] == [["curated", "2", "2"]]
    start = lines.index(
        "difference 1: topic other_amount, message m3, published 2026-02-03T10:00:00Z, other_amount.jsonl:6, kind plain"
    )
    assert lines[start + 1 : start + 7] == [
        "  Curated's values are others",
        "  expected  1 curated; version m3; key 'k2'",
        "  found     1 curated; version m3; key 'k2'",
        "  rows      raw 1, standardized 1, curated 1",
        "  column    amount: expected '19.90', found '20.90'",
        "  look      lean-ops trace m3",
    ]
    assert lines[-1] == "1 of 6 messages differ"


def test_a_right_lake_is_said_in_a_sentence(home: VerifyHome, run: Run, tmp_path: Path) -> None:
    code, out, err = run(home, "--fates", str(home.write(tmp_path / "fates.jsonl", "as_told")))
    assert (code, out.splitlines()[-1], err) == (0, "6 messages as the oracle says", "")


def test_only_the_first_differences_are_told_in_the_order_of_the_lines(
    home: VerifyHome, run: Run, tmp_path: Path
) -> None:
    file = home.write(tmp_path / "fates.jsonl", "older_one_won", "letter_lost", "other_parse_reason")
    code, out, _ = run(home, "--fates", str(file), "--show", "2", "--json")
    document = json.loads(out)
    assert (code, document["differences"]) == (1, 4)
    assert [(one["topic"], one["line"]) for one in document["shown"]] == [
        ("older_one_won", 1),
        ("other_parse_reason", 3),
    ]
    code, out, _ = run(home, "--fates", str(file), "--show", "0")
    assert code == 1
    assert "difference 1" not in out


def test_hostile_text_is_told_without_obeying_it(home: VerifyHome, run: Run, tmp_path: Path) -> None:
    for row in home.lines["hostile"]:
        if row["line"] == 8:
            row["curated"] = {"note": "other"}
    file = home.write(tmp_path / "fates.jsonl", "hostile")
    for row in home.lines["hostile"]:
        if row["line"] == 8:
            row["curated"] = {"note": row["message_id"]}
    code, out, _ = run(home, "--fates", str(file))
    assert (code, out.splitlines()[-1]) == (1, "4 of 10 messages differ")
    assert "\x1b" not in out
    assert "\x00" not in out
    assert "[bold]x[/bold]" in out
    assert max(map(len, out.splitlines())) < 3000


# slices


def test_a_topic_that_is_compared_in_slices_says_the_same(
    home: VerifyHome, found: dict[str, Any], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recount_checks, "_SLICE_ROWS", 40)
    topics = ("as_told", "older_one_won", "other_amount", "key_twice", "letter_lost", "unknown_message")
    file = home.write(tmp_path / "fates.jsonl", *topics)
    code, out, _ = run(home, "--fates", str(file), "--show", "1000", "--json")
    document = json.loads(out)
    assert (code, document["differences"], document["unknown"]) == (1, 5, 3)
    for topic in topics:
        assert differences(document, topic) == differences(found, topic)
    assert {one["fate"]: one["found"] for one in document["fates"]} == {
        "dead_letter": 5,
        "duplicate": 6,
        "parse_error": 6,
        "curated": 11,
        "superseded": 6,
        "error": 5,
        "missing": 1,
    }


# what the oracle does not tell of


@pytest.mark.parametrize("topic", UNKNOWN)
def test_messages_that_no_line_knows_are_a_note(home: VerifyHome, run: Run, tmp_path: Path, topic: str) -> None:
    file, count = home.write(tmp_path / "fates.jsonl", topic), len(UNKNOWN[topic][1])
    code, out, _ = run(home, "--fates", str(file))
    plural = "" if count == 1 else "s"
    assert code == 0
    assert f"note: {count} message{plural} of these topics that no line knows" in out.splitlines()


@pytest.mark.parametrize("topic", UNKNOWN)
def test_with_a_complete_oracle_they_are_differences(home: VerifyHome, run: Run, tmp_path: Path, topic: str) -> None:
    file, ids = home.write(tmp_path / "fates.jsonl", topic), UNKNOWN[topic][1]
    code, out, _ = run(home, "--fates", str(file), "--complete", "--json")
    document = json.loads(out)
    assert (code, document["matches"]) == (1, False)
    assert document["unknown"] == document["differences"] == len(ids)
    assert differences(document, topic) == {message_id: ["unknown"] for message_id in ids}


def test_a_complete_oracle_of_a_right_lake_knows_everything(home: VerifyHome, run: Run, tmp_path: Path) -> None:
    code, _, _ = run(home, "--fates", str(home.write(tmp_path / "fates.jsonl", *RIGHT)), "--complete")
    assert code == 0


@pytest.mark.parametrize(("topic", "more"), [("copy_too_many", 1), ("letter_twice", 1), ("as_told", 0)])
def test_redelivered_copies_are_counted_and_no_difference(
    home: VerifyHome, run: Run, tmp_path: Path, topic: str, more: int
) -> None:
    file = home.write(tmp_path / "fates.jsonl", topic)
    code, out, _ = run(home, "--fates", str(file), "--redelivered", "--json")
    document = json.loads(out)
    assert (code, document["redelivered"], document["differences"]) == (0, more, 0)
    assert run(home, "--fates", str(file))[0] == (1 if more else 0)


def test_a_lost_copy_stays_a_difference_when_files_were_redelivered(home: VerifyHome, run: Run, tmp_path: Path) -> None:
    topics = ("copy_never_came", "never_came", "letter_lost", "standardized_twice", "other_amount")
    code, out, _ = run(home, "--fates", str(home.write(tmp_path / "f.jsonl", *topics)), "--redelivered", "--json")
    assert (code, json.loads(out)["differences"]) == (1, len(topics))


# several files, topics and tables that are not there


def test_several_files_are_one_oracle(home: VerifyHome, run: Run, tmp_path: Path) -> None:
    lines = home.write(tmp_path / "all.jsonl", "as_told").read_text().splitlines(keepends=True)
    (tmp_path / "one.jsonl").write_text("\n".join(lines[:2]))
    (tmp_path / "two.jsonl").write_text("".join(lines[2:]))
    two = ("--fates", str(tmp_path / "one.jsonl"), "--fates", str(tmp_path / "two.jsonl"))
    code, out, _ = run(home, *two, "--complete")
    assert (code, out.splitlines()[-1]) == (0, "6 messages as the oracle says")


def test_two_fates_of_one_message_are_an_error_that_says_where(home: VerifyHome, run: Run, tmp_path: Path) -> None:
    one = home.write(tmp_path / "one.jsonl", "as_told")
    line = {**home.lines["as_told"][4], "fate": "superseded"}
    (tmp_path / "two.jsonl").write_text("\n" + json.dumps(line))
    code, _, err = run(home, "--fates", str(one), "--fates", str(tmp_path / "two.jsonl"))
    assert code == 2
    assert f"{tmp_path / 'two.jsonl'}:2: two fates of one message, 'm2'" in err
    assert f"found superseded, and curated at {one}:5" in err


def test_a_topic_that_the_lake_does_not_know_is_missing(home: VerifyHome, run: Run, tmp_path: Path) -> None:
    lines = [{**row, "topic": "nowhere"} for row in home.lines["as_told"]]
    (tmp_path / "fates.jsonl").write_text("\n".join(map(json.dumps, lines)))
    code, out, _ = run(home, "--fates", str(tmp_path / "fates.jsonl"), "--json")
    document = json.loads(out)
    assert (code, document["differences"], document["messages"]) == (1, 6, 6)
    assert {"fate": "missing", "expected": 0, "found": 7} in document["fates"]


def test_a_value_that_its_column_can_not_hold_is_an_error_of_the_oracle(
    home: VerifyHome, run: Run, tmp_path: Path
) -> None:
    unfit = {
        "amount": ["19.901", "1e1", "nineteen", ""],
        "item_count": ["3.7", 3.0, "9999999999"],
        "express": ["yes", 1],
        "ordered_on": ["2026-02-03 10:00", "2026-02-30"],
        "updated_at": ["soon"],
        "quality": ["good"],
    }
    for column, value in ((column, value) for column, values in unfit.items() for value in values):
        lines = [dict(row) for row in home.lines["as_told"]]
        lines[4]["curated"] = {column: value}
        (tmp_path / "fates.jsonl").write_text("\n".join(map(json.dumps, lines)))
        code, _, err = run(home, "--fates", str(tmp_path / "fates.jsonl"))
        assert (code, f"fates.jsonl:5, curated.{column}: " in err, repr(str(value)) in err) == (2, True, True), err


def test_a_topic_that_goes_on_to_curated_waits_for_its_first_batch(run: Run, tmp_path: Path) -> None:
    home = VerifyHome(tmp_path / "home")
    home.add("events", RIGHT["only_standardized"])
    home.finish()
    file = home.write(tmp_path / "fates.jsonl")
    assert run(home, "--fates", str(file))[0] == 0
    put(home.services.state, RegistryItem("events", Status.READY, curated=True))
    code, out, _ = run(home, "--fates", str(file), "--json")
    document = json.loads(out)
    assert (code, document["differences"]) == (1, 4)
    assert document["shown"][0]["found"]["fates"] == {"pending": 1, "duplicate": 1}


@pytest.mark.parametrize("zone", ["raw", "standardized", "curated"])
def test_a_table_that_can_not_be_read_is_said_and_hides_no_other_topic(run: Run, tmp_path: Path, zone: str) -> None:
    home = VerifyHome(tmp_path / "home")
    home.add("broken", RIGHT["as_told"])
    home.add("right", RIGHT["as_told"])
    home.finish()
    table = home.lake.catalog.load_table((f"iceberg_{zone}_db", "broken_staging" if zone == "raw" else "broken"))
    for task in table.scan().plan_files():
        Path(task.file.file_path.removeprefix("file://")).unlink()
    code, out, err = run(home, "--fates", str(home.write(tmp_path / "fates.jsonl")))
    assert (code, out.splitlines()[-1]) == (1, "6 messages as the oracle says; 1 topic can't be compared")
    assert "error: topic broken can't be compared: " in err


def test_a_history_that_can_not_be_read_is_said(run: Run, tmp_path: Path) -> None:
    home = VerifyHome(tmp_path / "home")
    home.add("broken", RIGHT["as_told"])
    home.finish()
    table = home.lake.catalog.load_table(("iceberg_standardized_db", "broken"))
    Path(table.metadata_location.removeprefix("file://")).write_text("{")
    code, out, err = run(home, "--fates", str(home.write(tmp_path / "fates.jsonl")), "--json")
    assert (code, json.loads(out)["matches"], list(json.loads(out)["problems"])) == (1, False, ["broken"])
    assert "iceberg_standardized_db.broken" in err


# wrong use


def test_a_file_that_is_none_is_wrong_use(home: VerifyHome, run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n \n")
    (tmp_path / "bodies.jsonl").write_text('{"message_id": "m1"}\n')
    for file, words in {
        tmp_path / "none.jsonl": "can't be read",
        tmp_path: "can't be read",
        tmp_path / "empty.jsonl": "no line at all",
        tmp_path / "bodies.jsonl": "bodies.jsonl:1: not a line of a fates file",
    }.items():
        code, _, err = run(home, "--fates", str(file))
        assert (code, words in err) == (2, True), err


def test_a_topic_that_no_line_tells_of_is_wrong_use(home: VerifyHome, run: Run, tmp_path: Path) -> None:
    code, _, err = run(home, "--fates", str(home.write(tmp_path / "fates.jsonl", "as_told")), "untold")
    assert (code, "no line tells of topic 'untold'" in err) == (2, True)


def test_verifying_needs_a_fates_file_and_a_lake(home: VerifyHome, run: Run, tmp_path: Path) -> None:
    assert run(home)[0] == 2
    file = home.write(tmp_path / "fates.jsonl", "as_told")
    with pytest.raises(SystemExit) as left:
        main(["--home", str(tmp_path / "no home"), "verify", "--fates", str(file)])
    assert left.value.code == 1
    assert not (tmp_path / "no home").exists()


def test_verifying_writes_nothing_and_starts_no_jvm(home: VerifyHome, tmp_path: Path) -> None:
    folder = home.services.settings.home

    def files() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}

    before, file = files(), home.write(tmp_path / "fates.jsonl", "as_told")
    script = (
        "import sys\nfrom lean_ops.entrypoints.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as left:\n"
        "    print(left.code, [name for name in ('pyspark', 'py4j') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", script, "--home", str(folder), "verify", "--fates", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines()[-1] in {"0 []", "None []"}
    assert files() == before
