"""What every state store promises of its registry; each test runs against each store."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from threading import Barrier
from typing import cast

import pytest
from tests.contract.bench import END, NOW, Bench

from lean_ops.model.errors import WrongUseError
from lean_ops.model.registry import Flow, RegistryItem, Status
from lean_ops.state.port import StateStore
from lean_ops.state.sqlite import SqliteStateStore

ITEM = RegistryItem(
    "events",
    Status.READY,
    Flow.PAUSED,
    "the night's \"work\"; it's ü",
    "1.2.0",
    "schemas/events/active/schema.json",
    "schemas/events/failed/error.json",
    "line 1\nline 2",
    "My-Events",
    NOW.isoformat(),
    curated=True,
)


def test_an_unknown_topic_has_no_item(store: StateStore) -> None:
    assert store.item("events") is None
    assert store.items() == {}


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("flow", Flow)
@pytest.mark.parametrize("curated", [True, False])
def test_an_item_comes_back_as_it_was_stored(
    bench: Bench, store: StateStore, status: Status, flow: Flow, curated: bool
) -> None:
    item = replace(ITEM, status=status, flow=flow, curated=curated)
    assert store.update_item("events", lambda _: item) == item
    for reader in (store, bench.open()):
        found = reader.item("events")
        assert found == item
        assert found.curated is curated
        assert reader.items() == {"events": item}


def test_an_update_gets_what_is_there_or_a_new_item(store: StateStore) -> None:
    seen: list[RegistryItem] = []

    def change(item: RegistryItem) -> RegistryItem:
        seen.append(item)
        return replace(item, schema_version="1.0.0")

    first = store.update_item("events", change)
    store.update_item("events", change)
    assert seen == [RegistryItem("events"), first]


def test_items_come_by_name_in_order(store: StateStore) -> None:
    for topic in ("orders", "a_b", "events"):
        store.update_item(topic, lambda item: item)
    assert list(store.items()) == ["a_b", "events", "orders"]


def test_more_items_than_one_answer_holds_are_all_read(store: StateStore) -> None:
    reason = "ü" * 60_000
    names = sorted(f"topic_{number}" for number in range(14))
    for name in names:
        store.update_item(name, lambda item: replace(item, flow_reason=reason))
    items = store.items()
    assert list(items) == names
    assert {item.flow_reason for item in items.values()} == {reason}


def test_a_change_that_fails_changes_nothing_and_blocks_nobody(bench: Bench, store: StateStore) -> None:
    store.update_item("events", lambda _: ITEM)

    def change(_: RegistryItem) -> RegistryItem:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.update_item("events", change)
    assert store.item("events") == ITEM
    assert bench.open().update_item("orders", lambda item: item) == RegistryItem("orders")
    assert store.update_item("events", lambda item: item) == ITEM


def test_no_update_of_eight_threads_is_lost(bench: Bench) -> None:
    store, start = bench.open(), Barrier(8)

    def add(item: RegistryItem) -> RegistryItem:
        return replace(item, schema_version=str(int(item.schema_version or 0) + 1))

    def work(_: int) -> None:
        start.wait(30)
        for _ in range(5):
            store.update_item("events", add)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    item = store.item("events")
    assert item is not None
    assert item.schema_version == "40"


def test_a_claimed_name_is_kept_and_may_be_claimed_again(store: StateStore) -> None:
    store.claim_name("my_events", "My-Events", NOW)
    claimed = RegistryItem("my_events", source_name="My-Events", updated_at=NOW.isoformat())
    assert store.item("my_events") == claimed
    store.claim_name("my_events", "My-Events", END)
    assert store.item("my_events") == claimed


def test_a_second_source_name_for_one_topic_is_wrong_use(store: StateStore) -> None:
    store.claim_name("my_events", "My-Events", NOW)
    with pytest.raises(WrongUseError, match="'My-Events' both become topic 'my_events'") as refused:
        store.claim_name("my_events", "my.events", NOW)
    assert refused.value.where == "topic 'my.events'"
    item = store.item("my_events")
    assert item is not None
    assert item.source_name == "My-Events"


def test_the_topics_own_name_goes_with_any_source_name(store: StateStore) -> None:
    store.claim_name("my_events", "my_events", NOW)
    store.claim_name("my_events", "My-Events", NOW)
    store.claim_name("my_events", "my_events", NOW)
    item = store.item("my_events")
    assert item is not None
    assert item.source_name == "My-Events"
    with pytest.raises(WrongUseError):
        store.claim_name("my_events", "my.events", NOW)


def test_claiming_a_name_leaves_the_rest_of_the_item(store: StateStore) -> None:
    store.update_item("events", lambda _: replace(ITEM, source_name=None))
    store.claim_name("events", "My-Events", END)
    assert store.item("events") == replace(ITEM, updated_at=END.isoformat())


def test_of_many_threads_with_different_names_exactly_one_claims_the_topic(bench: Bench) -> None:
    names = ["A-B", "a-B", "A-b", "a-b", "A.B", "a.B", "A.b", "a.b"]
    store, start = bench.open(), Barrier(len(names))

    def claims(name: str) -> bool:
        start.wait(30)
        try:
            store.claim_name("a_b", name, NOW)
        except WrongUseError:
            return False
        return True

    with ThreadPoolExecutor(len(names)) as pool:
        claimed = [name for name, won in zip(names, pool.map(claims, names), strict=True) if won]
    item = store.item("a_b")
    assert item is not None
    assert claimed == [item.source_name]


# the embedded store alone


def test_the_first_opening_waits_for_another_process_that_opens_too(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("CREATE TABLE being_made (x)")
    other.execute("BEGIN IMMEDIATE")
    store = cast("StateStore", SqliteStateStore(file, 300, lambda _: False))
    with ThreadPoolExecutor(1) as pool:
        items = pool.submit(store.items)
        wait([items], timeout=0.1)
        other.execute("COMMIT")
        other.close()
        assert items.result(30) == {}


EARLIER_RELEASE = """
CREATE TABLE schema_registry (
    topic_name TEXT PRIMARY KEY, processing_enabled INTEGER NOT NULL, status TEXT NOT NULL, flow TEXT NOT NULL,
    flow_reason TEXT, schema_version TEXT, schema_path TEXT, error_path TEXT, last_error TEXT,
    source_name TEXT, updated_at TEXT)
"""


def make_store_of_an_earlier_release(file: Path) -> None:
    """A registry from before topics went on to Curated, with one topic in it."""
    topic, *others = [value for name, value in asdict(ITEM).items() if name != "curated"]
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(EARLIER_RELEASE)
        db.execute("INSERT INTO schema_registry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (topic, 0, *others))


def test_a_store_of_an_earlier_release_keeps_its_items_and_learns_of_curated(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    make_store_of_an_earlier_release(file)
    for _ in range(2):
        store = SqliteStateStore(file, 300, lambda _: False)
        assert store.items() == {"events": replace(ITEM, curated=False)}
    store.update_item("events", lambda _: ITEM)
    assert store.item("events") == ITEM


def test_a_store_of_an_earlier_release_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    file, start = tmp_path / "state.db", Barrier(8)
    make_store_of_an_earlier_release(file)

    def items(_: int) -> dict[str, RegistryItem]:
        start.wait(30)
        return SqliteStateStore(file, 300, lambda _: False).items()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(items, range(8))) == [{"events": replace(ITEM, curated=False)}] * 8
