"""`reconcile` over a real home: each topic tells the same story with one thing disturbed, and that is what is found."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import structlog
from tests.integration.reconcile_home import DAY, Home, Told, message
from tests.integration.reconcile_stories import BALANCED, DISTURBED, Found, Stories, message_lost, told_with
from tests.integration.test_query import delete_positions
from tests.registry import put

from lean_ops.entrypoints.cli import main
from lean_ops.entrypoints.logs import log_into
from lean_ops.lake.snapshots import History
from lean_ops.ledger import recount_checks
from lean_ops.model.batch import Zone
from lean_ops.model.registry import RegistryItem, Status
from lean_ops.operate.intent import LAST_BATCH_PROPERTY, published_batch

Run = Callable[..., tuple[int, str, str]]
Looked = tuple[bool, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Stories:
    return Stories(tmp_path_factory.mktemp("reconcile") / "home with spaces")


@pytest.fixture(scope="module", autouse=True)
def _log_as_before() -> Iterator[None]:
    yield
    log_into.cache_clear()
    structlog.reset_defaults()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "250")

    def call(home: Home, *arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["--home", str(home.services.settings.home), "reconcile", *arguments])
        printed = capsys.readouterr()
        return int(left.value.code or 0), printed.out, printed.err

    return call


def accounts(printed: str) -> dict[str, Any]:
    """The zones of the one topic that was asked for."""
    [zones] = by_topic(printed).values()
    return zones


def by_topic(printed: str) -> dict[str, dict[str, Any]]:
    topics = json.loads(printed)["topics"]
    return {topic["topic"]: {zone["zone"]: zone for zone in topic["zones"]} for topic in topics}


@pytest.fixture(scope="module", params=["at once", "recounted"])
def looked(request: pytest.FixtureRequest, stories: Stories) -> Looked:
    """Whether all topics were recounted, and what that said."""
    recount, printed = request.param == "recounted", io.StringIO()
    flags = ["--recount"] if recount else []
    with redirect_stdout(printed), pytest.raises(SystemExit) as left:
        main(["--home", str(stories.services.settings.home), "--json", "reconcile", *flags])
    assert left.value.code == 1
    return recount, by_topic(printed.getvalue())


def found(told: Told, zones: dict[str, Any]) -> Found:
    """The findings that are no notes, batches by the names that the story gives them."""
    names = {batch_id: name for name, batch_id in told.ids.items()}
    return {
        (zone, finding["kind"]): sorted(names.get(one, one) for one in finding["ids"])
        for zone, account in zones.items()
        for finding in account["findings"]
        if not finding["note"]
    }


# what balances


@pytest.mark.parametrize("topic", BALANCED)
def test_a_topic_whose_records_all_have_one_fate_balances(stories: Stories, looked: Looked, topic: str) -> None:
    zones = looked[1][topic]
    assert found(stories.topics[topic], zones) == {}
    assert all(zone["balanced"] for zone in zones.values())
    assert {(zone["difference"], zone["variance"], zone["accountability"]) for zone in zones.values()} == {(0, 0, 1)}


def test_the_lines_say_what_became_of_the_records(stories: Stories, run: Run) -> None:
    columns = ("records_in", "records_out", "inserted", "updated", "duplicates", "superseded", "errors", "rows")
    zones = accounts(run(stories, "good", "--json")[1])
    assert {zone: tuple(account[name] for name in columns) for zone, account in zones.items()} == {
        "raw": (7, 6, 6, 0, 0, 0, 1, 6),
        "standardized": (6, 4, 4, 0, 1, 0, 1, 4),
        "curated": (4, 3, 2, 1, 0, 0, 1, 2),
    }
    recounted = accounts(run(stories, "good", "--recount", "--json")[1])
    assert {zone: tuple(account[name] for name in columns) for zone, account in recounted.items()} == {
        "raw": (7, 6, 6, 0, 0, 0, 1, 6),
        "standardized": (6, 4, 4, 0, 1, 0, 1, 4),
        "curated": (4, 2, 2, 0, 0, 1, 1, 2),
    }


def test_a_row_that_a_newer_version_replaced_is_no_row_of_the_table(tmp_path: Path, run: Run) -> None:
    home, told = Home(tmp_path), Told("events")
    told.curated[0].append(message("m1", "k1", "c1"))
    home.book([home.tell(told)])
    table = home.lake.load(home.lake.names.curated("events"))
    [first] = [task.file.file_path for task in table.scan("message_id = 'm1'").plan_files()]
    assert run(home)[0] == run(home, "--recount")[0] == 1
    delete_positions(table, {first: [0]}, tmp_path / "deletes.parquet")
    for flags in ((), ("--recount",)):
        code, out, _ = run(home, *flags, "--json")
        assert (code, accounts(out)["curated"]["rows"]) == (0, 2)


@pytest.mark.parametrize(
    ("topic", "waiting"),
    [
        ("good", {"raw": None, "standardized": 0, "curated": 0}),
        ("waits", {"raw": None, "standardized": 2, "curated": 1}),
        ("behind_an_open_batch", {"raw": None, "standardized": 2, "curated": 0}),
        ("only_standardized", {"raw": None, "standardized": 0, "curated": None}),
    ],
)
def test_what_no_batch_has_read_yet_waits(looked: Looked, topic: str, waiting: dict[str, int | None]) -> None:
    assert {zone: account["waiting"] for zone, account in looked[1][topic].items()} == waiting


# what does not


@pytest.mark.parametrize("topic", DISTURBED)
def test_what_is_disturbed_is_found_and_a_recount_explains_it_by_ids(
    stories: Stories, looked: Looked, topic: str
) -> None:
    recount, topics = looked
    _, at_once, by_rows = DISTURBED[topic]
    assert found(stories.topics[topic], topics[topic]) == (by_rows if recount else at_once)


@pytest.mark.parametrize(
    ("topic", "at_once", "recounted"), [("good", 0, 0), ("row_too_many", 1, 1), ("error_doubled", 0, 1)]
)
def test_the_exit_code_says_whether_all_balances(
    stories: Stories, run: Run, topic: str, at_once: int, recounted: int
) -> None:
    assert run(stories, topic)[0] == at_once
    assert run(stories, topic, "--recount")[0] == recounted


@pytest.mark.parametrize("topic", ["message_lost", "key_twice", "key_lost"])
def test_tables_that_are_counted_in_slices_come_to_the_same(
    stories: Stories, run: Run, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = accounts(run(stories, topic, "--recount", "--json")[1])
    monkeypatch.setattr(recount_checks, "_SLICE_ROWS", 2)
    assert accounts(run(stories, topic, "--recount", "--json")[1]) == whole


def test_numbers_in_doubt_are_a_share_of_what_came_in(stories: Stories, run: Run) -> None:
    lost = accounts(run(stories, "message_lost", "--json")[1])["standardized"]
    assert (lost["difference"], lost["variance"], lost["accountability"]) == (1, 1 / 7, 6 / 7)
    extra = accounts(run(stories, "row_too_many", "--json")[1])["standardized"]
    assert (extra["difference"], extra["variance"], extra["accountability"]) == (1, 1 / 6, 1.0)


# batches that are published and not booked


class Killed(Home):
    """Topics whose last batches are published without a line in the ledger, and a state store."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.topics = {topic: self._tell(topic) for topic in ("killed", "closed", "altered", "forgotten")}
        for topic in ("altered", "forgotten"):
            table = self.lake.load(self.lake.names.standardized(topic))
            with table.transaction() as transaction:
                if topic == "altered":
                    transaction.set_properties(**{LAST_BATCH_PROPERTY: "{"})
                else:
                    transaction.remove_properties(LAST_BATCH_PROPERTY)
        self._close("closed")
        self.book(list(self.topics.values()))

    def _tell(self, topic: str) -> Told:
        unbooked = {"f2", "b2", "c2"} if topic == "killed" else {"b2"}
        return self.tell(Told(topic, unbooked=unbooked))

    def history(self, topic: str) -> History:
        history = self.lake.file.history(self.lake.names.standardized(topic))
        assert history is not None
        return history

    def _close(self, topic: str) -> None:
        """The store says that the batch is done: no run will look after it again."""
        intent = published_batch(self.history(topic))
        lease = self.services.state.acquire(topic, "me", DAY)
        assert intent is not None
        self.services.state.save_intent(intent, lease, DAY)  # type: ignore[arg-type]
        self.services.state.close_batch(intent, lease, DAY)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    return Killed(tmp_path_factory.mktemp("killed"))


@pytest.mark.parametrize("flags", [(), ("--recount",)])
def test_a_batch_that_the_next_run_books_is_a_note(killed: Killed, run: Run, flags: tuple[str, ...]) -> None:
    code, out, _ = run(killed, "killed", *flags, "--json")
    zones, ids = accounts(out), killed.topics["killed"].ids
    assert code == 0
    assert {zone: [finding["message"] for finding in account["findings"]] for zone, account in zones.items()} == {
        zone: [f"batch {ids[name]} is published and not yet in the ledger; the next run books it"]
        for zone, name in (("raw", "f2"), ("standardized", "b2"), ("curated", "c2"))
    }
    assert {zone: account["records_in"] for zone, account in zones.items()} == {
        "raw": 7,
        "standardized": 6,
        "curated": 4,
    }


def test_dead_letters_of_a_flush_that_is_not_booked_may_be_there_or_not(tmp_path: Path, run: Run) -> None:
    home = Home(tmp_path)
    without = home.tell(Told("without", unbooked={"f1"}, letters=[]))
    home.book([home.tell(Told("there", unbooked={"f1"})), without])
    assert run(home, "--recount")[0] == 0


@pytest.mark.parametrize("topic", ["closed", "altered", "forgotten"])
def test_a_published_batch_that_nobody_will_book_is_a_fault(killed: Killed, run: Run, topic: str) -> None:
    code, out, _ = run(killed, topic, "--json")
    assert code == 1
    assert found(killed.topics[topic], accounts(out)) == {
        ("standardized", "NOT_IN_LEDGER"): ["b2"],
        ("standardized", "ROWS"): [],
        ("standardized", "SOURCE"): [],
    }


# what can't be counted


class Broken(Home):
    """Topics with a file that can't be read or a snapshot that is gone, beside one that is whole."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        topics = [self.tell(Told(topic)) for topic in ("bad_raw", "bad_data", "whole")]
        topics.append(self.tell(Told("expired", ends={"b2": 77})))
        self.book(topics)
        self._location(Zone.RAW, "bad_raw").write_text("{")
        data = self.lake.load(self.lake.names.curated("bad_data")).location().removeprefix("file://")
        for file in Path(data).rglob("*.parquet"):
            file.write_bytes(b"PAR1 and then nothing")

    def _location(self, zone: Zone, topic: str) -> Path:
        name = self.lake.names.of_zone(zone, topic)
        return Path(self.lake.file.locations(name.database)[name.table].removeprefix("file://"))


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Broken:
    return Broken(tmp_path_factory.mktemp("broken"))


@pytest.mark.parametrize("flags", [(), ("--recount",)])
@pytest.mark.parametrize(
    ("topic", "zones", "words"),
    [
        ("bad_raw", ["raw", "standardized"], "its metadata file is damaged"),
        ("expired", ["standardized"], "is not in the history"),
        ("whole", [], ""),
    ],
)
def test_what_cant_be_counted_is_a_finding_and_hides_nothing_else(
    broken: Broken, run: Run, topic: str, zones: list[str], words: str, flags: tuple[str, ...]
) -> None:
    code, out, _ = run(broken, topic, *flags, "--json")
    findings = {
        zone: finding
        for zone, account in accounts(out).items()
        for finding in account["findings"]
        if not finding["note"]
    }
    assert code == (1 if zones else 0)
    assert list(findings) == zones
    assert {finding["kind"] for finding in findings.values()} == ({"UNCOUNTABLE"} if zones else set())
    assert all(words in finding["message"] for finding in findings.values())


def test_a_table_that_somebody_deleted_from_is_told_and_counted_all_the_same(tmp_path: Path, run: Run) -> None:
    home = Home(tmp_path)
    told = home.tell(Told("events"))
    home.book([told])
    home.lake.load(home.lake.names.standardized("events")).delete("message_id = 'm3'")
    code, out, _ = run(home, "--recount", "--json")
    assert code == 1
    assert found(told, accounts(out)) == {
        ("standardized", "MISSING"): ["m3"],
        ("standardized", "BATCH_COUNT"): ["b2"],
        ("standardized", "ROWS"): [],
        ("curated", "UNCOUNTABLE"): [],
    }
    at_once = found(told, accounts(run(home, "--json")[1]))
    assert at_once == {("standardized", "ROWS"): [], ("curated", "UNCOUNTABLE"): []}


def test_rows_that_cant_be_read_are_found_by_the_recount(broken: Broken, run: Run) -> None:
    assert run(broken, "bad_data")[0] == 0
    code, out, _ = run(broken, "bad_data", "--recount", "--json")
    assert code == 1
    zones = accounts(out)
    assert [zone for zone, account in zones.items() if not account["balanced"]] == ["curated"]
    [finding] = zones["curated"]["findings"]
    assert finding["kind"] == "UNCOUNTABLE"


# what a recount leaves behind


def test_a_recount_is_in_the_ledger_once_per_zone_and_counts_for_nothing(tmp_path: Path, run: Run) -> None:
    home = Home(tmp_path)
    told = [home.tell(Told("good")), home.tell(told_with("lost", message_lost))]
    home.book(told)
    before = run(home, "--json")
    assert run(home, "--recount")[0] == 1
    assert run(home, "--json") == before
    ledger = home.lake.load(home.lake.names.ops("reconciliation_log")).scan().to_arrow().to_pylist()
    rows = {(row["topic_name"], row["zone"]): row for row in ledger if row["kind"] == "RECOUNT"}
    assert len(rows) == len([row for row in ledger if row["kind"] == "RECOUNT"]) == 6
    assert len({row["batch_id"] for row in rows.values()}) == 6
    lost = rows["lost", "standardized"]
    checkpoint = home.lake.file.history(home.lake.names.standardized("lost")).checkpoint()  # type: ignore[union-attr]
    assert checkpoint is not None
    assert (lost["from_snapshot"], lost["to_snapshot"]) == (None, str(checkpoint.to_snapshot))
    assert (lost["records_in"], lost["inserted"], lost["duplicates"], lost["errors"]) == (7, 4, 1, 1)
    assert (lost["variance"], lost["balanced"]) == (1 / 7, False)
    assert [row["balanced"] for place, row in rows.items() if place != ("lost", "standardized")] == [True] * 5
    [alert] = home.lake.load(home.lake.names.ops("alerts")).scan().to_arrow().to_pylist()
    assert (alert["kind"], alert["topic_name"], alert["severity"]) == ("RECOUNT_VARIANCE", "lost", "critical")
    assert (alert["value"], alert["threshold"]) == (1 / 7, 0.01)
    assert "m5" in alert["message"]


def test_a_recount_makes_the_books_if_there_are_none(tmp_path: Path, run: Run) -> None:
    home = Home(tmp_path)
    home.lake.catalog.drop_table(("ops_db", "alerts"))
    home.lake.catalog.drop_table(("ops_db", "reconciliation_log"))
    home.lake.ensure_raw("empty")
    assert run(home)[0] == 0
    assert not home.lake.exists(home.lake.names.ops("alerts"))
    assert run(home, "--recount")[0] == 0
    assert home.lake.exists(home.lake.names.ops("alerts"))


# the command


def test_a_person_reads_a_table_the_findings_and_a_sentence(stories: Stories, killed: Killed, run: Run) -> None:
    code, out, _ = run(stories, "good", "waits", "good")
    assert code == 0
    assert out.splitlines()[-1] == "2 topics, 6 zones: everything balances"
    assert out.count("standardized") == 2
    code, out, _ = run(stories, "message_lost", "--recount")
    assert code == 1
    assert "message_lost, standardized: MISSING: " in out
    assert out.splitlines()[-1] == "1 topic, 3 zones: 1 not balanced: message_lost standardized"
    _, out, _ = run(killed, "killed")
    assert "note: killed, curated: batch " in out


def test_without_a_name_all_topics_are_looked_at(stories: Stories, run: Run) -> None:
    code, out, _ = run(stories, "--json")
    document = json.loads(out)
    assert code == 1
    assert (document["balanced"], document["recount"]) == (False, False)
    assert [topic["topic"] for topic in document["topics"]] == sorted(stories.topics)
    unbalanced = {topic for topic, (_, at_once, _) in DISTURBED.items() if at_once}
    assert {topic["topic"] for topic in document["topics"] if not topic["balanced"]} == unbalanced


def test_a_registered_topic_without_tables_balances_and_waits_for_nothing(tmp_path: Path, run: Run) -> None:
    home = Home(tmp_path)
    put(home.services.state, RegistryItem("later", Status.READY, schema_version="1.0.0", curated=True))
    code, out, _ = run(home, "--json")
    assert code == 0
    assert [account["waiting"] for account in accounts(out).values()] == [None, 0, 0]
    assert run(home, "--recount")[0] == 0
    assert "RECOUNT" not in str(home.lake.load(home.lake.names.ops("reconciliation_log")).scan().to_arrow().to_pylist())


def test_a_topic_that_nobody_knows_is_wrong_use(stories: Stories, run: Run) -> None:
    for flags in ((), ("--recount",)):
        code, out, err = run(stories, "good", "goods", *flags)
        assert (code, out) == (2, "")
        assert "there is no such topic" in err
        assert "good" in err


def test_without_a_home_nothing_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for flags in ([], ["--recount"]):
        with pytest.raises(SystemExit) as left:
            main(["--home", str(tmp_path / "nowhere"), "reconcile", *flags])
        assert left.value.code == 1
        assert "no lake here" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_looking_makes_nothing(stories: Stories, run: Run) -> None:
    home = stories.services.settings.home

    def files() -> list[Path]:
        return sorted(path for path in home.rglob("*") if not path.name.endswith(("-shm", "-wal")))

    before = files()
    run(stories)
    assert files() == before
    assert not (home / "state.db").exists()


@pytest.mark.parametrize(
    ("flags", "unwanted"),
    [
        ([], {"pandas", "pyspark", "sqlalchemy", "pyiceberg.io.pyarrow"}),
        (["--recount"], {"pyspark"}),
    ],
)
def test_no_jvm_is_started_and_only_what_is_needed_imported(
    stories: Stories, flags: list[str], unwanted: set[str]
) -> None:
    arguments = ["--home", str(stories.services.settings.home), "--json", "reconcile", "good", *flags]
    program = (
        "import sys\nfrom lean_ops.entrypoints.cli import main\n"
        f"try:\n    main({arguments!r})\n"
        "except SystemExit as left:\n    assert not left.code, left.code\n"
        f"print(sorted(set(sys.modules) & {unwanted!r}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert json.loads(done.stdout)["balanced"]
    assert done.stderr.strip().endswith("[]")
